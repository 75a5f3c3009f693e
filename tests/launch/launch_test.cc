// Jobs of real processes: shell scripts as workers.
#include "starling/launch/launch.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "tests/launch/processes.h"

namespace starling::launch {
namespace {

using Texts = std::vector<std::string>;

struct Line {
  std::size_t worker;
  Stream stream;
  std::string text;
};

struct Job {
  Result result;
  std::vector<Line> lines;

  Texts of(std::size_t worker, Stream stream = Stream::Out) const {
    Texts all;
    for (const Line& line : lines) {
      if (line.worker == worker && line.stream == stream) {
        all.push_back(line.text);
      }
    }
    return all;
  }
};

// Grace times. Nobody who behaves needs the long one; the short one is there to be over.
constexpr Seconds kLong{60};
constexpr Seconds kShort{0.3};

// Runs the script in each worker; `hear` may answer what it hears. Afterwards this process has no
// children, descriptors and blocked signals but those it had.
Job run(Options options, const std::string& script,
        const std::function<void(const Line&)>& hear = {}) {
  Job job;
  options.command = {"/bin/sh", "-c", script};
  options.on_line = [&](std::size_t worker, Stream stream, std::string_view text) {
    job.lines.push_back({worker, stream, std::string(text)});
    if (hear) {
      hear(job.lines.back());
    }
  };
  const std::string children = own_children();
  const std::size_t descriptors = open_descriptors();
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  job.result = launch(options);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(own_children(), children);
  EXPECT_EQ(open_descriptors(), descriptors);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE}) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  }
  EXPECT_EQ(job.result.workers.size(), options.workers);
  for (const Outcome& outcome : job.result.workers) {
    EXPECT_NE(outcome.exit_code.has_value(), outcome.signal.has_value());
    EXPECT_TRUE(has_ended(outcome.pid));
    EXPECT_GE(outcome.time.count(), 0);
  }
  return job;
}

// Sends a signal to this process when a worker writes `word`.
std::function<void(const Line&)> answer(const std::string& word, int signal) {
  return [=](const Line& line) {
    if (line.text == word) {
      kill(getpid(), signal);
    }
  };
}

std::string refusal(const Options& options) {
  try {
    launch(options);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Input);
    return e.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// --- What workers are given --------------------------------------------------------------------

TEST(Launch, WorkersKnowWhoTheyAreAndShareTheRest) {
  const Job job = run({.workers = 3, .environment = {{"NEST", "high up"}}},
                      "echo $STARLING_RANK; echo $STARLING_SIZE; echo $STARLING_MEET; "
                      "echo $STARLING_SECRET; echo $NEST; echo $OMP_NUM_THREADS");
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const Texts words = job.of(rank);
    ASSERT_EQ(words.size(), 6u);
    EXPECT_EQ(words[0], std::to_string(rank));
    EXPECT_EQ(words[1], "3");
    EXPECT_TRUE(words[2].starts_with("unix:@starling-")) << words[2];
    EXPECT_EQ(words[2], job.of(0)[2]);
    EXPECT_EQ(words[3].size(), 32u);
    EXPECT_EQ(words[3], job.of(0)[3]);
    EXPECT_EQ(words[4], "high up");
    EXPECT_GE(std::stoi(words[5]), 1);
  }
  EXPECT_NE(run({}, "echo $STARLING_SECRET").of(0)[0], job.of(0)[3]);
}

TEST(Launch, StdinIsEmpty) { EXPECT_EQ(run({}, "cat; echo end").of(0), Texts{"end"}); }

TEST(Launch, EachWorkerLeadsAGroupOfItsOwn) {
  const Job job = run({.workers = 2}, "echo $$; cut -d' ' -f5 /proc/$$/stat");
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::string pid = std::to_string(job.result.workers[rank].pid);
    EXPECT_EQ(job.of(rank), (Texts{pid, pid}));
  }
}

// Not in a shell: some set the mask themselves.
TEST(Launch, TheSignalMaskIsThatOfTheCaller) {
  sigset_t set;
  sigset_t previous;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, &previous);
  Texts heard;
  launch(
      {.command = {"grep", "SigBlk", "/proc/self/status"},
       .on_line = [&](std::size_t, Stream, std::string_view line) { heard.emplace_back(line); }});
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  EXPECT_EQ(heard, Texts{"SigBlk:\t0000000000000800"});  // the bit of SIGUSR2
}

TEST(Launch, LimitsAreThoseOfTheCaller) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low{.rlim_cur = 64, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  // 40 workers take 120 descriptors.
  const Job job = run({.workers = 40}, "ulimit -n");
  rlimit after{};
  getrlimit(RLIMIT_NOFILE, &after);
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(after.rlim_cur, 64u);
  for (std::size_t rank = 0; rank < 40; ++rank) {
    EXPECT_EQ(job.of(rank), Texts{"64"});
  }
}

// --- Output ------------------------------------------------------------------------------------

TEST(Launch, StreamsAreToldApartAndThePartialLastLineIsHeard) {
  const Job job = run({.workers = 2}, "echo a; echo b >&2; printf 'c\\nd'; printf e >&2");
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job.of(rank), (Texts{"a", "c", "d"}));
    EXPECT_EQ(job.of(rank, Stream::Err), (Texts{"b", "e"}));
  }
}

TEST(Launch, AnyByteMayBeWritten) {
  EXPECT_EQ(run({}, "printf 'a\\000\\377\\rb\\n'").of(0), Texts{std::string("a\0\xff\rb", 5)});
}

TEST(Launch, ALineOfAMegabyteIsOneLine) {
  const Job job =
      run({.workers = 2}, "head -c 1000000 /dev/zero | tr '\\000' $STARLING_RANK; echo");
  EXPECT_EQ(job.of(0), Texts{std::string(1000000, '0')});
  EXPECT_EQ(job.of(1), Texts{std::string(1000000, '1')});
}

TEST(Launch, MoreWorkersThanCores) {
  const Job job =
      run({.workers = 16},
          "i=0; while [ $i -lt 200 ]; do echo $STARLING_RANK line $i; i=$((i+1)); done");
  for (std::size_t rank = 0; rank < 16; ++rank) {
    const Texts lines = job.of(rank);
    ASSERT_EQ(lines.size(), 200u);
    EXPECT_EQ(lines[199], std::to_string(rank) + " line 199");
    EXPECT_EQ(job.result.workers[rank].exit_code, 0);
  }
}

TEST(Launch, WithoutAListenerOutputIsDropped) {
  const Result result = launch({.command = {"/bin/sh", "-c", "seq 100000; exit 3"}});
  EXPECT_EQ(result.workers[0].exit_code, 3);
}

TEST(Launch, AListenerThatThrowsEndsTheJob) {
  pid_t pid = 0;
  const auto hear = [&](const Line& line) {
    pid = std::stoi(line.text);
    throw std::runtime_error("enough");
  };
  EXPECT_THROW(run({.workers = 2}, "echo $$; exec sleep 1000", hear), std::runtime_error);
  EXPECT_TRUE(has_ended(pid));
  EXPECT_EQ(own_children(), "");
}

// --- Ends and losses ---------------------------------------------------------------------------

TEST(Launch, OutcomesAreTold) {
  const Job job = run({.workers = 3, .on_loss = OnLoss::Continue},
                      "case $STARLING_RANK in 1) exit 7;; 2) kill -9 $$;; esac");
  EXPECT_EQ(job.result.workers[0].exit_code, 0);
  EXPECT_EQ(job.result.workers[1].exit_code, 7);
  EXPECT_EQ(job.result.workers[2].signal, SIGKILL);
  EXPECT_FALSE(job.result.workers[0].has_failed());
  EXPECT_TRUE(job.result.workers[2].has_failed());
  EXPECT_EQ(describe(job.result.workers[0]), "ended with exit code 0");
  EXPECT_EQ(describe(job.result.workers[1]), "ended with exit code 7");
  EXPECT_EQ(describe(job.result.workers[2]), "was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(std::set<std::size_t>(job.result.lost.begin(), job.result.lost.end()),
            (std::set<std::size_t>{1, 2}));
}

TEST(Launch, AKilledWorkerEndsTheOthers) {
  const Job job =
      run({.workers = 4, .grace = kLong}, "[ $STARLING_RANK = 2 ] && kill -9 $$; exec sleep 1000");
  EXPECT_EQ(job.result.lost, std::vector<std::size_t>{2});
  EXPECT_EQ(job.result.stopped, 3u);
  EXPECT_EQ(job.result.interrupted_by, std::nullopt);
  for (const std::size_t rank : {0, 1, 3}) {
    EXPECT_EQ(job.result.workers[rank].signal, SIGTERM);
  }
}

// SIGUSR1, which is forwarded to all, ends worker 1 and not worker 0.
TEST(Launch, TheOthersMayEndInGoodOrder) {
  const Job job = run({.workers = 2, .grace = kLong},
                      "[ $STARLING_RANK = 1 ] && exec sleep 1000; "
                      "trap '' USR1; trap 'echo saved; exit 0' TERM; echo ready; "
                      "while :; do sleep 0.05; done",
                      answer("ready", SIGUSR1));
  EXPECT_EQ(job.of(0), (Texts{"ready", "saved"}));
  EXPECT_EQ(job.result.workers[0].exit_code, 0);
  EXPECT_EQ(job.result.workers[1].signal, SIGUSR1);
  EXPECT_EQ(job.result.lost, std::vector<std::size_t>{1});
}

TEST(Launch, TheOthersGoOnIfSo) {
  const Job job = run({.workers = 3, .on_loss = OnLoss::Continue},
                      "[ $STARLING_RANK = 0 ] && exit 4; sleep 0.3; echo done");
  EXPECT_EQ(job.result.lost, std::vector<std::size_t>{0});
  EXPECT_EQ(job.result.stopped, 0u);
  EXPECT_EQ(job.of(1), Texts{"done"});
  EXPECT_EQ(job.of(2), Texts{"done"});
}

TEST(Launch, WhoIgnoresTheRequestIsKilledAfterTheGraceTime) {
  const Job job = run({.workers = 2, .grace = kShort},
                      "[ $STARLING_RANK = 1 ] && exec sleep 1000; "
                      "trap '' USR1 TERM; echo ready; sleep 1000",
                      answer("ready", SIGUSR1));
  EXPECT_EQ(job.result.workers[0].signal, SIGKILL);
  EXPECT_EQ(job.result.lost, std::vector<std::size_t>{1});
}

// --- Signals -----------------------------------------------------------------------------------

TEST(Launch, RequestsToEndAreForwarded) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // The last to be ready asks.
    int ready = 0;
    const auto hear = [&](const Line& line) {
      if (line.text == "ready" && ++ready == 2) {
        kill(getpid(), signal);
      }
    };
    const Job job = run({.workers = 2, .grace = kLong},
                        "trap 'echo told; exit 9' INT TERM HUP; echo ready; "
                        "while :; do sleep 0.05; done",
                        hear);
    EXPECT_EQ(job.result.interrupted_by, signal);
    EXPECT_TRUE(job.result.lost.empty()) << "who was asked to end is not lost";
    for (std::size_t rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(job.of(rank), (Texts{"ready", "told"}));
      EXPECT_EQ(job.result.workers[rank].exit_code, 9);
    }
  }
}

TEST(Launch, OtherSignalsAreForwardedAndEndNothing) {
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    const Job job = run({.grace = kLong},
                        "trap 'echo told; told=1' USR1 USR2; echo ready; "
                        "while [ -z \"$told\" ]; do sleep 0.05; done; echo done",
                        answer("ready", signal));
    EXPECT_EQ(job.of(0), (Texts{"ready", "told", "done"}));
    EXPECT_EQ(job.result.interrupted_by, std::nullopt);
    EXPECT_EQ(job.result.workers[0].exit_code, 0);
  }
}

TEST(Launch, WhoIgnoresAnInterruptIsKilledAfterTheGraceTime) {
  const Job job = run({.grace = kShort}, "trap '' INT; echo ready; sleep 1000; sleep 1000",
                      answer("ready", SIGINT));
  EXPECT_EQ(job.result.interrupted_by, SIGINT);
  EXPECT_EQ(job.result.workers[0].signal, SIGKILL);
}

TEST(Launch, ASecondRequestKills) {
  const auto hear = [](const Line& line) {
    if (line.text == "ready" || line.text == "still here") {
      kill(getpid(), SIGTERM);
    }
  };
  const Job job =
      run({.grace = kLong}, "trap '' TERM; echo ready; sleep 1; echo still here; sleep 1000", hear);
  EXPECT_EQ(job.result.interrupted_by, SIGTERM);
  EXPECT_EQ(job.result.workers[0].signal, SIGKILL);
  EXPECT_EQ(job.of(0), (Texts{"ready", "still here"}));
  EXPECT_LT(job.result.workers[0].time, kLong / 2) << "not by the end of the grace time";
}

// As `timeout` does, which signals its child and then the group that the child is in.
TEST(Launch, ARequestForwardedTwiceIsOne) {
  const auto hear = [](const Line& line) {
    if (line.text == "ready") {  // two different ones, or the kernel would make them one
      kill(getpid(), SIGINT);
      kill(getpid(), SIGTERM);
    }
  };
  const Job job = run({.grace = kLong},
                      "trap 'sleep 0.5; echo saved; exit 0' INT; echo ready; "
                      "while :; do sleep 0.05; done",
                      hear);
  EXPECT_EQ(job.of(0), (Texts{"ready", "saved"}));
  EXPECT_EQ(job.result.workers[0].exit_code, 0);
  EXPECT_EQ(job.result.interrupted_by, SIGINT);
}

TEST(Launch, WhatTheCallerIgnoresIsNotForwarded) {
  const auto previous = signal(SIGHUP, SIG_IGN);
  const Job job =
      run({.grace = kShort}, "echo ready; sleep 0.5; echo done", answer("ready", SIGHUP));
  signal(SIGHUP, previous);
  EXPECT_EQ(job.of(0), (Texts{"ready", "done"}));
  EXPECT_EQ(job.result.interrupted_by, std::nullopt);
}

TEST(Launch, ACallerThatIgnoresItsChildrenHearsOfThem) {
  const auto previous = signal(SIGCHLD, SIG_IGN);
  const Job job = run({}, "exit 6");
  EXPECT_EQ(signal(SIGCHLD, previous), SIG_IGN) << "as it was";
  EXPECT_EQ(job.result.workers[0].exit_code, 6);
}

// --- No orphans --------------------------------------------------------------------------------

TEST(Launch, WhatAWorkerLeavesBehindMayFinishWriting) {
  const Job job = run({.grace = kLong}, "{ sleep 0.3; echo last word; } & exit 0");
  EXPECT_EQ(job.of(0), Texts{"last word"});
}

TEST(Launch, WhatAWorkerLeavesBehindIsKilled) {
  const Job job = run({.workers = 2, .grace = kShort}, "sleep 1000 & echo $!; exit 0");
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(job.of(rank).size(), 1u);
    EXPECT_TRUE(ends(std::stoi(job.of(rank)[0])));
    EXPECT_EQ(job.result.workers[rank].exit_code, 0);
  }
}

TEST(Launch, GrandchildrenEndWithAnInterruptedJob) {
  std::vector<pid_t> pids;
  const auto hear = [&](const Line& line) {
    if (line.stream == Stream::Err) {
      return;  // a shell tells which signal ended what it ran
    }
    pids.push_back(std::stoi(line.text));
    if (pids.size() == 2) {
      kill(getpid(), SIGTERM);
    }
  };
  run({.workers = 2, .grace = kLong}, "sleep 1000 & echo $!; sleep 1000", hear);
  ASSERT_EQ(pids.size(), 2u);
  EXPECT_TRUE(ends(pids[0]));
  EXPECT_TRUE(ends(pids[1]));
}

TEST(Launch, WhoLeftTheGroupIsFoundAndKilled) {
  std::vector<pid_t> pids;
  const auto hear = [&](const Line& line) {
    if (line.stream == Stream::Err) {
      return;  // a shell tells which signal ended what it ran
    }
    pids.push_back(std::stoi(line.text));
    if (pids.size() == 2) {
      kill(getpid(), SIGUSR1);
    }
  };
  const Job job = run({.grace = kShort},
                      "trap 'exit 0' USR1; "
                      "setsid sh -c 'echo $$; setsid sh -c \"echo \\$\\$; exec sleep 1000\" & "
                      "sleep 1000' & "
                      "while :; do sleep 0.05; done",
                      hear);
  EXPECT_EQ(job.result.workers[0].exit_code, 0);
  ASSERT_EQ(pids.size(), 2u);
  EXPECT_TRUE(ends(pids[0]));
  EXPECT_TRUE(ends(pids[1]));
}

// --- Mistakes ----------------------------------------------------------------------------------

TEST(Launch, ACommandThatCannotBeRunIsNamed) {
  EXPECT_EQ(refusal({.workers = 3, .command = {"no-such-bird"}}),
            "cannot run 'no-such-bird': No such file or directory");
  EXPECT_EQ(refusal({.command = {"/etc/passwd"}}), "cannot run '/etc/passwd': Permission denied");
  EXPECT_EQ(own_children(), "");
}

TEST(Launch, OptionsThatMakeNoSenseAreRefused) {
  const Texts command = {"true"};
  EXPECT_TRUE(has(refusal({.workers = 0, .command = command}), "1 to 4096"));
  EXPECT_TRUE(has(refusal({.workers = 4097, .command = command}), "4097 workers"));
  EXPECT_TRUE(has(refusal({}), "command"));
  EXPECT_TRUE(has(refusal({.command = command, .grace = Seconds(-1)}), "grace"));
  EXPECT_TRUE(has(refusal({.command = command, .grace = Seconds(1e30)}), "grace"));
  EXPECT_TRUE(has(refusal({.command = command, .environment = {{"A=B", "C"}}}), "'A=B'"));
}

}  // namespace
}  // namespace starling::launch
