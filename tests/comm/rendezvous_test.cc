// Workers meet and exchange, on every kind of socket; with strangers at the door.
#include "starling/comm/rendezvous.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "starling/comm/introduction.h"
#include "starling/comm/protocol.h"
#include "tests/comm/meeting.h"

namespace starling::comm {
namespace {

void expect_all_well(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    EXPECT_FALSE(outcome) << outcome->what();
  }
}

class Sizes : public testing::TestWithParam<std::size_t> {};

TEST_P(Sizes, MeetAndExchange) {
  for (const std::string& meet :
       {unix_place(), tcp_place(), tcp_place("localhost"), tcp_place("0.0.0.0")}) {
    SCOPED_TRACE(meet);
    std::atomic<std::size_t> met = 0;
    expect_all_well(meet_all(jobs_at(meet, GetParam()), kPatience, [&](Rendezvous& rendezvous) {
      EXPECT_EQ(rendezvous.size(), GetParam());
      EXPECT_EQ(rendezvous.how(), "starling run");
      EXPECT_EQ(rendezvous.secret(), "s");
      for (int i = 0; i < 3; ++i) {
        exchange_ranks(rendezvous);
      }
      ++met;
    }));
    EXPECT_EQ(met, GetParam());
  }
}

TEST_P(Sizes, WhatIsBroughtMayBeEmptyOrOfAnyLength) {
  const auto length = [](std::size_t rank, std::size_t round) { return rank * 1000 * round; };
  const auto meet_there = [&](Rendezvous& rendezvous) {
    for (std::size_t round = 0; round < 3; ++round) {
      const std::size_t own = rendezvous.rank().index();
      const auto table = rendezvous.exchange(Bytestring(length(own, round), std::byte{7}));
      ASSERT_EQ(table.size(), GetParam());
      for (std::size_t rank = 0; rank < table.size(); ++rank) {
        EXPECT_EQ(table[rank], Bytestring(length(rank, round), std::byte{7}));
      }
    }
  };
  expect_all_well(meet_all(jobs_at(unix_place(), GetParam()), kPatience, meet_there));
}

TEST_P(Sizes, WithoutASecretOneIsDrawn) {
  std::mutex mutex;
  std::multiset<std::string> secrets;
  expect_all_well(
      meet_all(jobs_at(tcp_place(), GetParam(), ""), kPatience, [&](Rendezvous& rendezvous) {
        const std::scoped_lock lock(mutex);
        secrets.insert(rendezvous.secret());
      }));
  EXPECT_EQ(secrets.begin()->size(), 32U);
  EXPECT_EQ(secrets.count(*secrets.begin()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Workers, Sizes, testing::Values(1, 2, 5, 8));

TEST(Rendezvous, Version6OfTheInternet) {
  const std::vector<Outcome> outcomes =
      meet_all(jobs_at(tcp_place("[::1]"), 3), std::chrono::seconds(2), exchange_ranks);
  if (std::filesystem::exists("/proc/net/if_inet6")) {
    expect_all_well(outcomes);
  } else {
    ASSERT_TRUE(outcomes[0]);
    EXPECT_EQ(outcomes[0]->code(), ErrorCode::Input);
  }
}

TEST(Rendezvous, OneWorkerNeedsNoPlace) {
  const auto rendezvous = meet(Job{}, kPatience);
  EXPECT_EQ(rendezvous->size(), 1U);
  EXPECT_EQ(rendezvous->rank(), Rank{0});
  EXPECT_EQ(rendezvous->how(), "no launcher");
  exchange_ranks(*rendezvous);
}

TEST(Rendezvous, WorkerZeroMayComeLast) {
  const std::vector<Job> jobs = jobs_at(tcp_place(), 3);
  std::jthread others(
      [&] { expect_all_well(meet_all({jobs[1], jobs[2]}, kPatience, exchange_ranks)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  expect_all_well(meet_all({jobs[0]}, kPatience, exchange_ranks));
}

TEST(Rendezvous, TheLargestThatMayBeBrought) {
  expect_all_well(meet_all(jobs_at(unix_place(), 4), kPatience, [](Rendezvous& rendezvous) {
    const Bytestring own(kLargestBrought,
                         std::byte{static_cast<unsigned char>(rendezvous.rank().value)});
    const auto table = rendezvous.exchange(own);
    EXPECT_EQ(table.at(rendezvous.rank().index()), own);
    EXPECT_EQ(table.at(3).size(), kLargestBrought);
  }));
}

// The others are bare connections, so that the tables need not be in memory at once.
TEST(Rendezvous, AThousandWorkers) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  static constexpr std::size_t kWorkers = 1000;
  const std::vector<Job> jobs = jobs_at(unix_place(), kWorkers);
  std::jthread worker_0([&] {
    expect_all_well(meet_all({jobs[0]}, kPatience, [](Rendezvous& rendezvous) {
      EXPECT_EQ(rendezvous.exchange(Bytestring(4096)).size(), kWorkers);
    }));
  });
  std::vector<Connection> others;
  for (std::size_t rank = 1; rank < kWorkers; ++rank) {
    others.push_back(visit(jobs[rank].meet));
    say(others.back(), introduce(jobs[rank]));
  }
  for (Connection& other : others) {
    ASSERT_EQ(listen_to(other)->kind, FrameKind::Welcome);
    say(other, pack_frame(FrameKind::Brought, Bytestring(4096)));
  }
  for (Connection& other : others) {
    EXPECT_EQ(listen_to(other)->bytes.size(), kWorkers * (4096 + 4));
  }
}

TEST(Rendezvous, NoSocketIsInherited) {
  expect_all_well(meet_all(jobs_at(tcp_place(), 3), kPatience, [](Rendezvous& rendezvous) {
    exchange_ranks(rendezvous);
    for (int descriptor = 3; descriptor < 256; ++descriptor) {
      struct stat status{};
      if (fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode)) {
        EXPECT_NE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0) << descriptor;
      }
    }
    exchange_ranks(rendezvous);
  }));
}

// Visitors at the door of a job of three, which must meet all the same. Whoever is not heard out
// stays until the workers have met.
void meet_despite(
    const std::string& meet,
    const std::function<void(const std::string&, std::vector<Connection>&)>& disturb) {
  const std::vector<Job> jobs = jobs_at(meet, 3);
  std::vector<Connection> visitors;
  std::jthread worker_0([&] { expect_all_well(meet_all({jobs[0]}, kPatience, exchange_ranks)); });
  disturb(meet, visitors);
  expect_all_well(meet_all({jobs[1], jobs[2]}, kPatience, exchange_ranks));
}

TEST(Strangers, WhoComeAndGo) {
  for (const std::string& place : {unix_place(), tcp_place()}) {
    meet_despite(place, [](const std::string& meet, std::vector<Connection>&) {
      for (int i = 0; i < 200; ++i) {
        visit(meet);
      }
    });
  }
}

TEST(Strangers, WhoSayNothingOrHalf) {
  for (const std::string& place : {unix_place(), tcp_place()}) {
    meet_despite(place, [](const std::string& meet, std::vector<Connection>& visitors) {
      const Bytestring half = introduce(jobs_at(meet, 3)[1]);
      for (std::size_t length = 0; length < 20; ++length) {
        visitors.push_back(visit(meet));
        say(visitors.back(), std::span(half).first(length));
      }
    });
  }
}

TEST(Strangers, MoreThanAreHeardAtATime) {
  meet_despite(tcp_place(), [](const std::string& meet, std::vector<Connection>& visitors) {
    for (int i = 0; i < 150; ++i) {
      visitors.push_back(visit(meet));
    }
    visitors.erase(visitors.begin(), visitors.begin() + 130);
  });
}

TEST(Strangers, WhoTalkRubbish) {
  for (const std::string& place : {unix_place(), tcp_place()}) {
    meet_despite(place, [](const std::string& meet, std::vector<Connection>& visitors) {
      visitors.push_back(visit(meet));
      say(visitors.back(), bytes_of("GET / HTTP/1.1\r\nHost: starling\r\n\r\n"));
      visitors.push_back(visit(meet));
      // More than the buffers hold: it is never read to the end.
      const Bytestring rubbish(1 << 20, std::byte{0xff});
      EXPECT_TRUE(visitors.back().write(rubbish));
    });
  }
}

// Introduces somebody, and returns what worker 0 answers.
std::string refusal(const std::string& meet, std::span<const std::byte> introduction) {
  Connection connection = visit(meet);
  say(connection, introduction);
  const std::optional<Frame> frame = listen_to(connection);
  EXPECT_TRUE(frame && frame->kind == FrameKind::Refused);
  return frame ? text_of(frame->bytes) : "";
}

TEST(Strangers, AreToldWhy) {
  meet_despite(tcp_place(), [](const std::string& meet, std::vector<Connection>&) {
    const Job job = jobs_at(meet, 3)[1];
    EXPECT_NE(refusal(meet, bytes_of("SSH-2.0-OpenSSH_9.2")).find("Starling"), std::string::npos);
    Bytestring other = introduce(job);
    other[8] = std::byte{kProtocolVersion + 1};
    EXPECT_NE(refusal(meet, other).find("version 2"), std::string::npos);
    // Another version may have less to say, or more.
    EXPECT_NE(refusal(meet, std::span(other).first(kOpeningLength)).find("version 2"),
              std::string::npos);
    Job odd = job;
    odd.rank = Rank{3};
    EXPECT_EQ(refusal(meet, introduce(odd)), "worker 3 is not expected");
    odd.rank = Rank{0};
    EXPECT_EQ(refusal(meet, introduce(odd)), "worker 0 is not expected");
  });
}

// A worker that is not of the job is refused with those words; the job meets all the same.
void expect_refusal(const std::function<void(Job&)>& change, const std::string& words) {
  for (const std::string& place : {unix_place(), tcp_place()}) {
    meet_despite(place, [&](const std::string& meet, std::vector<Connection>&) {
      Job job = jobs_at(meet, 3)[1];
      change(job);
      const Outcome outcome = outcome_of([&] { comm::meet(job, kPatience); });
      ASSERT_TRUE(outcome);
      EXPECT_EQ(outcome->code(), ErrorCode::Input);
      EXPECT_EQ(outcome->what(), fmt::format("worker 0 at {} refused us: {}", meet, words));
    });
  }
}

TEST(Strangers, OfAnotherJobAreRefused) {
  expect_refusal([](Job& job) { job.secret = "t"; }, "another job is there (wrong secret)");
  expect_refusal([](Job& job) { job.secret = ""; }, "another job is there (wrong secret)");
  expect_refusal([](Job& job) { job.size = 4; }, "another job is there (it has 3 workers, not 4)");
}

TEST(Strangers, OfARankThatIsThereAreRefused) {
  const std::vector<Job> jobs = jobs_at(tcp_place(), 3);
  std::jthread worker_0([&] { expect_all_well(meet_all({jobs[0]}, kPatience, exchange_ranks)); });
  Connection first = visit(jobs[1].meet);
  say(first, introduce(jobs[1]));
  const Outcome second = outcome_of([&] { meet(jobs[1], kPatience); });
  ASSERT_TRUE(second);
  EXPECT_EQ(second->code(), ErrorCode::Input);
  EXPECT_NE(std::string(second->what()).find("worker 1 is there already"), std::string::npos);
  std::jthread worker_2([&] { expect_all_well(meet_all({jobs[2]}, kPatience, exchange_ranks)); });
  ASSERT_EQ(listen_to(first)->kind, FrameKind::Welcome);
  say(first, pack_frame(FrameKind::Brought, bytes_of("I am 1")));
  EXPECT_EQ(listen_to(first)->kind, FrameKind::Table);
}

}  // namespace
}  // namespace starling::comm
