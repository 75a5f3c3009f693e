#include "starling/sim/cluster.h"

#include <gtest/gtest.h>

#include <coroutine>
#include <string>

#include "starling/base/error.h"
#include "starling/base/running.h"
#include "starling/comm/barrier.h"

namespace starling::sim {
namespace {

using comm::Engine;

ClusterOptions options_of(std::size_t workers) {
  return {.network = {.ports = {.workers = workers}}, .engine = {}};
}

Error error_of(const std::exception_ptr& end) {
  try {
    if (end) {
      std::rethrow_exception(end);
    }
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    ADD_FAILURE() << "not an Error: " << e.what();
  }
  return {ErrorCode::Bug, "none"};
}

Task<void> all_meet(Engine& engine, std::uint64_t id) {
  std::vector<Rank> everyone;
  for (std::uint32_t r = 0; r < engine.size(); ++r) {
    everyone.push_back(Rank{r});
  }
  co_await comm::barrier(engine, {.id = id, .members = everyone});
}

TEST(Cluster, RunsAProgramOnEveryWorker) {
  Cluster cluster(options_of(5));
  std::vector<int> ran(5);
  const auto ends = cluster.run([&](Engine& engine) -> Task<void> {
    return [](Engine& e, std::vector<int>& r) -> Task<void> {
      ++r[e.rank().index()];
      co_await all_meet(e, 1);
      ++r[e.rank().index()];
    }(engine, ran);
  });
  ASSERT_EQ(ends.size(), 5u);
  EXPECT_NO_THROW(rethrow_first(ends));
  EXPECT_EQ(ran, (std::vector<int>{2, 2, 2, 2, 2}));
}

TEST(Cluster, SleepingTakesVirtualTime) {
  Cluster cluster(options_of(2));
  std::vector<double> woke(2);
  const auto sleep = [](Engine& engine, std::vector<double>& times) -> Task<void> {
    co_await engine.sleep_for(std::chrono::hours(1 + engine.rank().value));
    times[engine.rank().index()] = seconds(engine.now().time_since_epoch());
  };
  const auto program = [&](Engine& engine) { return sleep(engine, woke); };
  rethrow_first(cluster.run(program));
  EXPECT_EQ(woke, (std::vector<double>{3600, 7200}));
  rethrow_first(cluster.run(program));
  EXPECT_EQ(woke, (std::vector<double>{10800, 14400})) << "time goes on from run to run";
}

TEST(Cluster, ExceptionsAreReturnedByRank) {
  Cluster cluster(options_of(4));
  const auto program = [](Engine& engine) -> Task<void> {
    co_await engine.sleep_for(Duration(1000 * (4 - engine.rank().value)));
    require(engine.rank().value % 2 == 0, "worker {} is odd", engine.rank());
  };
  const auto ends = cluster.run(program);
  EXPECT_FALSE(ends[0]);
  EXPECT_STREQ(error_of(ends[1]).what(), "worker 1 is odd");
  EXPECT_FALSE(ends[2]);
  EXPECT_STREQ(error_of(ends[3]).what(), "worker 3 is odd");
  try {
    rethrow_first(ends);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "worker 1 is odd");
  }
}

TEST(Cluster, AProgramThatWaitsForEverIsNamed) {
  Cluster cluster(options_of(3));
  const auto program = [](Engine& engine) -> Task<void> {
    co_await engine.sleep_for(Duration(1000));
    if (engine.rank() == Rank{1}) {
      co_await std::suspend_always{};
    }
  };
  const auto ends = cluster.run(program);
  EXPECT_FALSE(ends[0]);
  EXPECT_FALSE(ends[2]);
  const Error error = error_of(ends[1]);
  EXPECT_EQ(error.code(), ErrorCode::Bug);
  EXPECT_NE(std::string(error.what()).find("worker 1 waits for ever"), std::string::npos)
      << error.what();
}

TEST(Cluster, WhoWaitedForEverTakesPartInNoLaterRun) {
  Cluster cluster(options_of(2));
  cluster.run([](Engine& engine) -> Task<void> {
    if (engine.rank() == Rank{0}) {
      co_await std::suspend_always{};
    }
  });
  const auto ends =
      cluster.run([](Engine& engine) -> Task<void> { co_await engine.sleep_for(Duration(1000)); });
  EXPECT_EQ(error_of(ends[0]).code(), ErrorCode::Cancelled);
  EXPECT_FALSE(ends[1]);
}

TEST(Cluster, ADeadWorkersProgramIsCancelled) {
  Cluster cluster(options_of(3));
  cluster.network().plan({.at_event = 1, .worker = Rank{2}});
  std::vector<bool> finished(3);
  const auto sleep = [](Engine& engine, std::vector<bool>& done) -> Task<void> {
    for (int i = 0; i < 5; ++i) {
      co_await engine.sleep_for(std::chrono::seconds(1));
    }
    done[engine.rank().index()] = true;
  };
  const auto ends = cluster.run([&](Engine& engine) { return sleep(engine, finished); });
  EXPECT_FALSE(ends[0]);
  EXPECT_FALSE(ends[1]);
  EXPECT_EQ(error_of(ends[2]).code(), ErrorCode::Cancelled);
  EXPECT_EQ(finished, (std::vector<bool>{true, true, false}));
  EXPECT_TRUE(cluster.network().dead(Rank{2}));
}

TEST(Cluster, CancellingARunningFromInsideAProgram) {
  Cluster cluster(options_of(2));
  std::vector<std::string> reasons(2);
  const auto sleep_long = [](Engine& engine) -> Task<void> {
    co_await engine.sleep_for(std::chrono::hours(1));
  };
  const auto program = [](Engine& engine, auto sleeping, std::string& reason) -> Task<void> {
    Running<void> child(sleeping(engine));
    co_await engine.sleep_for(std::chrono::seconds(1));
    child.cancel(std::make_exception_ptr(Error(ErrorCode::Cancelled, "enough")));
    try {
      co_await child;
    } catch (const Error& e) {
      reason = e.what();
    }
    check(engine.now() < Time(std::chrono::seconds(2)), "it slept on");
  };
  rethrow_first(cluster.run(
      [&](Engine& engine) { return program(engine, sleep_long, reasons[engine.rank().index()]); }));
  EXPECT_EQ(reasons, (std::vector<std::string>{"enough", "enough"}));
}

TEST(Cluster, CancellingOneOfManyChildrenLeavesTheOthers) {
  Cluster cluster(options_of(3));
  int cancelled = 0;
  const auto program = [](Engine& engine, int& count) -> Task<void> {
    Running<void> stays(all_meet(engine, 1));
    Running<void> goes(
        [](Engine& e) -> Task<void> { co_await e.sleep_for(std::chrono::hours(1)); }(engine));
    goes.cancel(std::make_exception_ptr(Error(ErrorCode::Cancelled, "enough")));
    co_await stays;
    try {
      co_await goes;
    } catch (const Error& e) {
      count += e.code() == ErrorCode::Cancelled ? 1 : 0;
    }
  };
  rethrow_first(cluster.run([&](Engine& engine) { return program(engine, cancelled); }));
  EXPECT_EQ(cancelled, 3);
}

TEST(Cluster, ProgressIsReportedNowAndThen) {
  Cluster cluster(options_of(2));
  int reports = 0;
  rethrow_first(cluster.run(
      [](Engine& engine) -> Task<void> {
        for (int i = 0; i < 100'000; ++i) {
          co_await engine.sleep_for(Duration(1000));
        }
      },
      [&](const Network& network) {
        ++reports;
        EXPECT_GT(network.events(), 0u);
      }));
  EXPECT_GE(reports, 5);
  EXPECT_LE(reports, 20);
}

TEST(Cluster, WeightlessEnginesUseOneMessagePerSegment) {
  ClusterOptions options = options_of(2);
  EXPECT_EQ(Cluster(options).engine(Rank{0}).options().chunk, comm::EngineOptions{}.chunk);
  options.payload = Payload::Weightless;
  EXPECT_EQ(Cluster(options).engine(Rank{0}).options().chunk, 0u);
}

}  // namespace
}  // namespace starling::sim
