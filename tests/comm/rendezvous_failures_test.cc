// Workers that do not come, end or get stuck while they meet: the others say who.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "starling/comm/introduction.h"
#include "starling/comm/protocol.h"
#include "tests/comm/meeting.h"

namespace starling::comm {
namespace {

constexpr Duration kShort = std::chrono::seconds(1);

void expect_error(const Outcome& outcome, ErrorCode code, const std::string& words) {
  ASSERT_TRUE(outcome) << "no error with '" << words << "'";
  EXPECT_EQ(name_of(outcome->code()), name_of(code)) << outcome->what();
  EXPECT_NE(std::string(outcome->what()).find(words), std::string::npos) << outcome->what();
}

void expect_errors(const std::vector<Outcome>& outcomes, ErrorCode code, const std::string& words) {
  for (const Outcome& outcome : outcomes) {
    expect_error(outcome, code, words);
  }
}

std::vector<Job> without(std::vector<Job> jobs, std::size_t rank) {
  jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(rank));
  return jobs;
}

TEST(RendezvousFailures, AWorkerThatDoesNotComeIsNamedByAll) {
  for (const std::string& place : {unix_place(), tcp_place()}) {
    const auto outcomes = meet_all(without(jobs_at(place, 4), 2), kShort, exchange_ranks);
    expect_errors(outcomes, ErrorCode::Stalled, "worker 2 did not come within 1 s");
  }
}

TEST(RendezvousFailures, TheFirstEightAreNamed) {
  const auto outcomes = meet_all({jobs_at(unix_place(), 20)[0]}, kShort, exchange_ranks);
  expect_errors(outcomes, ErrorCode::Stalled,
                "workers 1, 2, 3, 4, 5, 6, 7, 8 and 11 more did not come");
}

TEST(RendezvousFailures, WorkerZeroDoesNotCome) {
  for (const std::string& place : {unix_place(), tcp_place()}) {
    const auto outcomes = meet_all(without(jobs_at(place, 3), 0), kShort, exchange_ranks);
    expect_errors(outcomes, ErrorCode::Stalled, "worker 0 did not come to " + place);
  }
}

TEST(RendezvousFailures, AWorkerThatStopsIsNamedByAll) {
  const auto outcomes = meet_all(jobs_at(tcp_place(), 4), kShort, [](Rendezvous& rendezvous) {
    exchange_ranks(rendezvous);
    if (rendezvous.rank() == Rank{3}) {
      std::this_thread::sleep_for(3 * kShort);
    }
    rendezvous.exchange({});
  });
  expect_errors(outcomes, ErrorCode::Stalled, "worker 3 came, but");
}

TEST(RendezvousFailures, AWorkerThatEndsBeforeAllHaveCome) {
  for (const std::string& place : {unix_place(), tcp_place()}) {
    const std::vector<Job> jobs = jobs_at(place, 4);
    std::vector<Outcome> outcomes;
    std::jthread worker_0([&] { outcomes = meet_all({jobs[0]}, kPatience, exchange_ranks); });
    Connection worker_1 = visit(place);
    say(worker_1, introduce(jobs[1]));
    {
      Connection worker_3 = visit(place);
      say(worker_3, introduce(jobs[3]));
    }
    EXPECT_EQ(listen_to(worker_1)->kind, FrameKind::Failed);
    // Who comes only now is to name the same worker, and not worker 0 for being gone.
    expect_errors(meet_all({jobs[2]}, kPatience, exchange_ranks), ErrorCode::Lost,
                  "worker 3 ended while the workers were meeting");
    worker_0.join();
    expect_errors(outcomes, ErrorCode::Lost, "worker 3 ended while the workers were meeting");
  }
}

TEST(RendezvousFailures, AWorkerThatEndsBetweenExchanges) {
  for (const std::string& place : {unix_place(), tcp_place()}) {
    auto outcomes = meet_all(jobs_at(place, 4), kPatience, [](Rendezvous& rendezvous) {
      exchange_ranks(rendezvous);
      if (rendezvous.rank() != Rank{2}) {
        rendezvous.exchange(Bytestring(100'000));
      }
    });
    EXPECT_FALSE(outcomes[2]);
    outcomes.erase(outcomes.begin() + 2);
    expect_errors(outcomes, ErrorCode::Lost, "worker 2 ended while the workers were meeting");
  }
}

TEST(RendezvousFailures, WorkerZeroEndsBetweenExchanges) {
  for (const std::string& place : {unix_place(), tcp_place()}) {
    auto outcomes = meet_all(jobs_at(place, 4), kPatience, [](Rendezvous& rendezvous) {
      exchange_ranks(rendezvous);
      if (rendezvous.rank() != Rank{0}) {
        rendezvous.exchange(Bytestring(500'000));
      }
    });
    EXPECT_FALSE(outcomes[0]);
    outcomes.erase(outcomes.begin());
    expect_errors(outcomes, ErrorCode::Lost, "worker 0 at " + place + " ended");
  }
}

// Runs the worker in a process of its own. To be called while there is one thread.
pid_t start_process(const Job& job) {
  const pid_t child = fork();
  if (child == 0) {
    outcome_of([&] { exchange_ranks(*meet(job, kPatience)); });
    _exit(0);
  }
  return child;
}

void kill_process(pid_t process) {
  kill(process, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(RendezvousFailures, WorkerZeroIsKilled) {
  const std::vector<Job> jobs = jobs_at(tcp_place(), 2);
  const pid_t worker_0 = start_process(jobs[0]);
  const auto outcomes = meet_all({jobs[1]}, kPatience, [&](Rendezvous& rendezvous) {
    kill_process(worker_0);
    exchange_ranks(rendezvous);
  });
  expect_errors(outcomes, ErrorCode::Lost, "worker 0 at " + jobs[0].meet + " ended");
}

TEST(RendezvousFailures, AWorkerIsKilled) {
  const std::vector<Job> jobs = jobs_at(tcp_place(), 3);
  const pid_t worker_1 = start_process(jobs[1]);
  const auto outcomes = meet_all(without(jobs, 1), kPatience, [&](Rendezvous& rendezvous) {
    if (rendezvous.rank() == Rank{0}) {
      kill_process(worker_1);
    }
    exchange_ranks(rendezvous);
  });
  expect_errors(outcomes, ErrorCode::Lost, "worker 1 ended while the workers were meeting");
}

TEST(RendezvousFailures, APortInUse) {
  for (const std::string& place : {unix_place(), tcp_place(), tcp_place("0.0.0.0")}) {
    const Socket other = listen_at(*parse_address(place), place);
    const auto outcomes = meet_all({jobs_at(place, 2)[0]}, kPatience, exchange_ranks);
    expect_errors(outcomes, ErrorCode::Input, place);
    expect_errors(outcomes, ErrorCode::Input, "perhaps another job");
  }
}

TEST(RendezvousFailures, TwoJobsAtOnePlace) {
  for (const std::string& place : {unix_place(), tcp_place()}) {
    const std::vector<Job> first = jobs_at(place, 3, "first");
    const std::vector<Job> second = jobs_at(place, 3, "second");
    std::vector<Outcome> outcomes;
    std::jthread host([&] { outcomes = meet_all({first[0]}, kPatience, exchange_ranks); });
    visit(place);  // it is there
    const std::vector<Outcome> refused = meet_all(second, kPatience, exchange_ranks);
    expect_error(refused[0], ErrorCode::Input, "perhaps another job");
    expect_error(refused[1], ErrorCode::Input, "wrong secret");
    expect_error(refused[2], ErrorCode::Input, "wrong secret");
    const std::vector<Outcome> others = meet_all(without(first, 0), kPatience, exchange_ranks);
    host.join();
    EXPECT_FALSE(outcomes[0] || others[0] || others[1]);
  }
}

TEST(RendezvousFailures, SomethingElseAnswers) {
  const std::string place = tcp_place();
  const Socket listener = listen_at(*parse_address(place), place);
  std::jthread server([&] {
    ASSERT_TRUE(wait_for(listener, POLLIN, std::chrono::steady_clock::now() + kPatience));
    Connection connection(std::move(*accept_at(listener)));
    say(connection, bytes_of("HTTP/1.1 400 Bad Request\r\n\r\n"));
    while (connection.leave()) {
      std::this_thread::yield();
    }
  });
  const auto outcomes = meet_all({jobs_at(place, 2)[1]}, kPatience, exchange_ranks);
  expect_errors(outcomes, ErrorCode::Input, "something else than worker 0 answers at " + place);
}

TEST(RendezvousFailures, SilenceIsNotWaitedForForEver) {
  const std::string place = tcp_place();
  const Socket listener = listen_at(*parse_address(place), place);
  const auto outcomes = meet_all({jobs_at(place, 2)[1]}, kShort, exchange_ranks);
  expect_errors(outcomes, ErrorCode::Stalled, "worker 0 at " + place + " did not answer");
}

TEST(RendezvousFailures, AHostThatDoesNotExist) {
  const auto outcomes =
      meet_all({jobs_at("tcp:256.256.256.256:4000", 2)[1]}, kShort, exchange_ranks);
  ASSERT_TRUE(outcomes[0]);
  EXPECT_TRUE(outcomes[0]->code() == ErrorCode::Input || outcomes[0]->code() == ErrorCode::Stalled);
}

TEST(RendezvousFailures, TooMuchIsBrought) {
  for (const std::uint32_t guilty : {0U, 1U}) {
    const auto outcomes = meet_all(jobs_at(unix_place(), 3), kPatience, [&](Rendezvous& meeting) {
      meeting.exchange(Bytestring(meeting.rank() == Rank{guilty} ? kLargestBrought + 1 : 1));
    });
    expect_error(outcomes[guilty], ErrorCode::Input, "too many");
    expect_error(outcomes[2], ErrorCode::Lost, fmt::format("worker {}", guilty));
  }
}

TEST(RendezvousFailures, AWorkerThatTalksRubbishAfterItsIntroduction) {
  const std::vector<Job> jobs = jobs_at(tcp_place(), 3);
  std::jthread liar([&] {
    Connection connection = visit(jobs[1].meet);
    say(connection, introduce(jobs[1]));
    ASSERT_EQ(listen_to(connection)->kind, FrameKind::Welcome);
    say(connection, Bytestring(64, std::byte{0xff}));
    EXPECT_EQ(listen_to(connection)->kind, FrameKind::Failed);
  });
  const auto outcomes = meet_all(without(jobs, 1), kPatience, exchange_ranks);
  expect_errors(outcomes, ErrorCode::Mismatch, "worker 1");
}

}  // namespace
}  // namespace starling::comm
