// Bad input and bad luck: every worker that waits gets an error naming the worker, the operation and
// what was awaited; nobody hangs, no input changes, and the engines go on with the next operation.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/running.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/comm/broadcast.h"
#include "starling/comm/neighbour_exchange.h"
#include "starling/comm/push_sum.h"
#include "starling/sim/cluster.h"

namespace starling::test {
namespace {

using comm::AllReduce;
using comm::Engine;

constexpr std::size_t kSmallCount = 100;
constexpr std::size_t kLargeCount = 20000;

std::vector<Rank> ranks(std::initializer_list<std::uint32_t> values) {
  std::vector<Rank> result;
  for (std::uint32_t v : values) {
    result.push_back(Rank{v});
  }
  return result;
}

struct End {
  std::optional<ErrorCode> code;  // none: it went well
  std::string text;
};

End end_of(const std::exception_ptr& error) {
  if (!error) {
    return {};
  }
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return {e.code(), e.what()};
  } catch (const std::exception& e) {
    return {ErrorCode::Bug, e.what()};
  }
}

class BadLuck : public testing::Test {
 protected:
  static constexpr std::size_t kWorkers = 4;

  BadLuck() : cluster_(options()) {}

  static sim::ClusterOptions options() {
    sim::ClusterOptions o;
    o.network.ports.workers = kWorkers;
    o.engine.max_stall = std::chrono::seconds(2);
    o.engine.answer_time = std::chrono::milliseconds(100);
    return o;
  }

  // Every worker brings `count` ones of type T.
  template <typename T>
  static Task<void> reduce(Engine& engine, std::uint64_t id, std::vector<Rank> members,
                           std::size_t count, AllReduce algorithm = AllReduce::Auto) {
    const std::vector<T> in(count, T{1});
    std::vector<T> out(count, T{-1});
    const comm::ConstBuffer input = comm::input(std::span(in));
    const comm::Buffer output = comm::output(std::span(out));
    std::exception_ptr error;
    try {
      co_await comm::all_reduce(engine, {.id = id, .members = members}, input, output, algorithm);
    } catch (...) {
      error = std::current_exception();
    }
    EXPECT_EQ(in, std::vector<T>(count, T{1})) << "the input was changed";
    if (error) {
      std::rethrow_exception(error);
    }
    EXPECT_EQ(out, std::vector<T>(count, static_cast<T>(members.size())));
  }

  std::vector<End> run(const sim::Cluster::Program& program) {
    std::vector<End> ends;
    for (const std::exception_ptr& error : cluster_.run(program)) {
      ends.push_back(end_of(error));
    }
    return ends;
  }

  static void expect(const End& end, ErrorCode code, std::initializer_list<const char*> words) {
    ASSERT_TRUE(end.code) << "went well";
    EXPECT_EQ(*end.code, code) << end.text;
    for (const char* word : words) {
      EXPECT_NE(end.text.find(word), std::string::npos) << "'" << word << "' in: " << end.text;
    }
  }

  // The living go on: another operation, small and large.
  void expect_usable(std::vector<Rank> members) {
    static std::uint64_t id = 1000;
    for (std::size_t count : {kSmallCount, kLargeCount}) {
      ++id;
      const auto ends = run([&](Engine& engine) -> Task<void> {
        return std::find(members.begin(), members.end(), engine.rank()) == members.end()
                   ? nothing()
                   : reduce<float>(engine, id, members, count);
      });
      for (Rank r : members) {
        EXPECT_FALSE(ends[r.index()].code) << ends[r.index()].text;
      }
    }
  }

  static Task<void> nothing() { co_return; }

  sim::Cluster cluster_;
  const std::vector<Rank> all_ = ranks({0, 1, 2, 3});
};

TEST_F(BadLuck, SizesThatDiffer) {
  std::uint64_t id = 0;
  for (std::size_t count : {kSmallCount, kLargeCount}) {
    for (AllReduce algorithm :
         {AllReduce::Doubling, AllReduce::Direct, AllReduce::Halving, AllReduce::Ring}) {
      ++id;
      const auto ends = run([&](Engine& engine) {
        const std::size_t own = engine.rank() == Rank{2} ? count + 1 : count;
        return reduce<float>(engine, id, all_, own, algorithm);
      });
      for (const End& end : ends) {
        expect(end, ErrorCode::Mismatch, {"all-reduce", "worker 2", "float32"});
      }
    }
  }
  expect_usable(all_);
}

TEST_F(BadLuck, TypesThatDifferWithEqualBytes) {
  std::uint64_t id = 0;
  for (std::size_t count : {kSmallCount, kLargeCount}) {
    ++id;
    const auto ends = run([&](Engine& engine) {
      return engine.rank() == Rank{1} ? reduce<double>(engine, id, all_, count, AllReduce::Direct)
                                      : reduce<float>(engine, id, all_, 2 * count, AllReduce::Direct);
    });
    for (const End& end : ends) {
      expect(end, ErrorCode::Mismatch, {"float32", "float64", "worker 1"});
    }
  }
  expect_usable(all_);
}

TEST_F(BadLuck, KindsAndAlgorithmsThatDiffer) {
  auto ends = run([&](Engine& engine) -> Task<void> {
    if (engine.rank() == Rank{3}) {
      co_await comm::barrier(engine, {.id = 1, .members = all_});
    } else {
      co_await reduce<float>(engine, 1, all_, kSmallCount);
    }
  });
  for (const End& end : ends) {
    expect(end, ErrorCode::Mismatch, {"barrier", "all-reduce", "worker 3"});
  }
  ends = run([&](Engine& engine) {
    return reduce<float>(engine, 2, all_, kLargeCount,
                         engine.rank() == Rank{0} ? AllReduce::Ring : AllReduce::Direct);
  });
  for (const End& end : ends) {
    expect(end, ErrorCode::Mismatch, {"worker 0", "different algorithms"});
  }
  expect_usable(all_);
}

TEST_F(BadLuck, GroupsThatDiffer) {
  std::uint64_t id = 0;
  for (std::size_t count : {kSmallCount, kLargeCount}) {
    for (double late : {0.0, 0.5}) {
      ++id;
      const std::vector<Rank> two = ranks({0, 1});
      const std::vector<Rank> three = ranks({0, 1, 2});
      const auto ends = run([&](Engine& engine) -> Task<void> {
        if (engine.rank() == Rank{2}) {
          // The others have long ended when this one is late.
          co_await engine.sleep_for(std::chrono::duration_cast<Duration>(Seconds(late)));
          co_await reduce<float>(engine, id, three, count);
        } else if (engine.rank() < Rank{2}) {
          co_await reduce<float>(engine, id, two, count);
        }
      });
      expect(ends[2], ErrorCode::Mismatch, {"all-reduce"});
      if (late > 0) {
        EXPECT_FALSE(ends[0].code) << ends[0].text;
        EXPECT_FALSE(ends[1].code) << ends[1].text;
      }
    }
  }
  expect_usable(all_);
}

TEST_F(BadLuck, MembersThatMakeNoSense) {
  struct Wrong {
    std::vector<Rank> members;
    const char* word;
  };
  std::uint64_t id = 0;
  const std::vector<Wrong> all_wrong = {{ranks({0, 1, 2, 7}), "worker 7"},
                                        {ranks({0, 2, 1, 3}), "rank order"},
                                        {ranks({0, 1, 1, 2}), "rank order"}};
  for (const Wrong& wrong : all_wrong) {
    ++id;
    // Worker 1 errs, the others wait for it and are told.
    const auto ends = run([&](Engine& engine) {
      return reduce<float>(engine, id, engine.rank() == Rank{1} ? wrong.members : all_, kLargeCount);
    });
    expect(ends[1], ErrorCode::Input, {wrong.word});
    for (std::uint32_t r : {0u, 2u}) {
      expect(ends[r], ErrorCode::Input, {wrong.word});
    }
    ASSERT_TRUE(ends[3].code);
  }
  expect_usable(all_);
}

TEST_F(BadLuck, AWorkerOutsideItsOwnGroup) {
  const auto ends = run([&](Engine& engine) {
    return reduce<float>(engine, 1, ranks({0, 1}), kSmallCount);
  });
  EXPECT_FALSE(ends[0].code);
  EXPECT_FALSE(ends[1].code);
  expect(ends[2], ErrorCode::Input, {"worker 2", "not in the group"});
  expect(ends[3], ErrorCode::Input, {"worker 3", "not in the group"});
}

TEST_F(BadLuck, AnEmptyBuffer) {
  std::uint64_t id = 0;
  for (std::size_t count : {kSmallCount, kLargeCount}) {
    ++id;
    const auto ends = run([&](Engine& engine) {
      return reduce<float>(engine, id, all_, engine.rank() == Rank{3} ? 0 : count);
    });
    expect(ends[3], ErrorCode::Input, {"empty"});
    for (std::uint32_t r : {0u, 1u, 2u}) {
      ASSERT_TRUE(ends[r].code);
      EXPECT_NE(ends[r].text.find("worker 3"), std::string::npos) << ends[r].text;
    }
  }
  expect_usable(all_);
}

TEST_F(BadLuck, BuffersThatOverlap) {
  const auto ends = run([&](Engine& engine) -> Task<void> {
    std::vector<float> data(kSmallCount, 1);
    const comm::ConstBuffer in = comm::input(std::span<float>(data));
    const comm::Buffer out = comm::output(std::span<float>(data));
    co_await comm::all_reduce(engine, {.id = 1, .members = all_}, in, out);
  });
  for (const End& end : ends) {
    expect(end, ErrorCode::Input, {"overlap"});
  }
}

TEST_F(BadLuck, AWorkerThatNeverArrivesIsNamed) {
  std::uint64_t id = 0;
  for (std::size_t count : {kSmallCount, kLargeCount}) {
    for (AllReduce algorithm :
         {AllReduce::Doubling, AllReduce::Direct, AllReduce::Halving, AllReduce::Ring}) {
      ++id;
      const auto ends = run([&](Engine& engine) {
        return engine.rank() == Rank{1} ? nothing()
                                        : reduce<float>(engine, id, all_, count, algorithm);
      });
      for (std::uint32_t r : {0u, 2u, 3u}) {
        expect(ends[r], ErrorCode::Stalled, {"all-reduce", "worker 1 did not start it", "awaits"});
      }
    }
  }
  expect_usable(all_);
}

TEST_F(BadLuck, AStoppedWorkerDoesNotAnswer) {
  cluster_.network().stop(Rank{2});
  const auto ends = run([&](Engine& engine) {
    return engine.rank() == Rank{2} ? nothing() : reduce<float>(engine, 1, all_, kLargeCount);
  });
  for (std::uint32_t r : {0u, 1u, 3u}) {
    expect(ends[r], ErrorCode::Stalled, {"worker 2 did not answer"});
  }
  cluster_.network().resume(Rank{2});
  expect_usable(all_);
}

TEST_F(BadLuck, ALateWorkerIsNoError) {
  const auto ends = run([&](Engine& engine) -> Task<void> {
    if (engine.rank() == Rank{2}) {
      co_await engine.sleep_for(std::chrono::milliseconds(1900));
    }
    co_await reduce<float>(engine, 1, all_, kLargeCount);
  });
  for (const End& end : ends) {
    EXPECT_FALSE(end.code) << end.text;
  }
}

TEST_F(BadLuck, AWorkerLostBeforeTheStart) {
  cluster_.network().die(Rank{3});
  const auto ends = run([&](Engine& engine) -> Task<void> {
    co_await engine.sleep_for(std::chrono::milliseconds(100));
    co_await reduce<float>(engine, 1, all_, kSmallCount);
  });
  for (std::uint32_t r : {0u, 1u, 2u}) {
    expect(ends[r], ErrorCode::Lost, {"all-reduce 1", "worker 3 was lost"});
  }
  expect_usable(ranks({0, 1, 2}));
}

TEST_F(BadLuck, AWorkerLostInTheMiddleNamesWhatWasAwaited) {
  cluster_.network().plan({.at_event = 10, .worker = Rank{3}, .kind = sim::FaultKind::Die});
  const auto ends = run([&](Engine& engine) {
    return reduce<float>(engine, 1, all_, kLargeCount, AllReduce::Ring);
  });
  for (std::uint32_t r : {0u, 1u, 2u}) {
    expect(ends[r], ErrorCode::Lost, {"all-reduce 1", "worker 3 was lost", "awaited"});
  }
  expect_usable(ranks({0, 1, 2}));
}

TEST_F(BadLuck, AnIdIsUsedOnce) {
  const auto ends = run([&](Engine& engine) -> Task<void> {
    co_await reduce<float>(engine, 1, all_, kSmallCount);
    co_await reduce<float>(engine, 1, all_, kSmallCount);
  });
  for (const End& end : ends) {
    expect(end, ErrorCode::Input, {"operation 1", "used before"});
  }
  expect_usable(all_);
}

TEST_F(BadLuck, CancelledOnOneWorker) {
  std::uint64_t id = 0;
  for (std::size_t count : {kSmallCount, kLargeCount}) {
    for (bool others_late : {false, true}) {
      ++id;
      const auto ends = run([&](Engine& engine) -> Task<void> {
        if (engine.rank() == Rank{0}) {
          Running<void> running(reduce<float>(engine, id, all_, count));
          running.cancel(std::make_exception_ptr(Error(ErrorCode::Cancelled, "had enough")));
          co_await running;
        } else {
          // Late: the word comes before the operation has been started here.
          co_await engine.sleep_for(std::chrono::milliseconds(others_late ? 100 : 0));
          co_await reduce<float>(engine, id, all_, count);
        }
      });
      expect(ends[0], ErrorCode::Cancelled, {"had enough"});
      for (std::uint32_t r : {1u, 2u, 3u}) {
        expect(ends[r], ErrorCode::Cancelled, {"had enough", "all-reduce", "worker 0"});
      }
    }
  }
  expect_usable(all_);
}

TEST_F(BadLuck, NeighboursThatDisagree) {
  std::uint64_t id = 0;
  for (std::size_t count : {kSmallCount, kLargeCount}) {
    ++id;
    // Worker 0 sends to worker 1, which expects nothing from it.
    const auto ends = run([&](Engine& engine) -> Task<void> {
      topology::Neighbours row;
      if (engine.rank() == Rank{0} || engine.rank() == Rank{2}) {
        row.out.push_back({Rank{1}, 0.5});
      } else if (engine.rank() == Rank{1}) {
        row.in.push_back({Rank{2}, 0.5});
      }
      const std::vector<float> in(count, 1);
      std::vector<float> out(count);
      const comm::ConstBuffer input = comm::input(std::span(in));
      const comm::Buffer output = comm::output(std::span(out));
      // Worker 2 is late, so that worker 1 is still there when worker 0's message comes.
      co_await engine.sleep_for(std::chrono::milliseconds(engine.rank() == Rank{2} ? 100 : 0));
      co_await comm::neighbour_exchange(engine, id, row, input, output);
    });
    expect(ends[1], ErrorCode::Mismatch, {"neighbour", "worker 0"});
    expect(ends[2], ErrorCode::Mismatch, {"neighbour", "worker 0"});
    EXPECT_FALSE(ends[3].code);
  }
  expect_usable(all_);
}

TEST_F(BadLuck, RowsThatMakeNoSense) {
  const auto exchange = [&](std::uint64_t id, const topology::Neighbours& row, bool push) {
    return end_of(cluster_.run([&](Engine& engine) -> Task<void> {
      if (engine.rank() != Rank{0}) {
        co_return;
      }
      const std::vector<float> in(kSmallCount, 1);
      std::vector<float> out(kSmallCount);
      const comm::ConstBuffer input = comm::input(std::span(in));
      const comm::Buffer output = comm::output(std::span(out));
      if (push) {
        co_await comm::push_sum(engine, id, row, 1.0, input, output);
      } else {
        co_await comm::neighbour_exchange(engine, id, row, input, output);
      }
    })[0]);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect(exchange(1, {.self_weight = 1, .in = {{Rank{0}, 1}}, .out = {}}, false), ErrorCode::Input,
         {"worker 0", "itself"});
  expect(exchange(2, {.self_weight = 1, .in = {}, .out = {{Rank{2}, 1}, {Rank{1}, 1}}}, false),
         ErrorCode::Input, {"rank order"});
  expect(exchange(3, {.self_weight = nan, .in = {}, .out = {}}, false), ErrorCode::Input, {"nan"});
  expect(exchange(4, {.self_weight = 1, .in = {{Rank{1}, nan}}, .out = {}}, false),
         ErrorCode::Input, {"workers 0 and 1"});
  expect(exchange(5, {.self_weight = 0.5, .in = {}, .out = {{Rank{1}, 0.4}}}, true),
         ErrorCode::Input, {"sum to 0.9"});
  expect(exchange(6, {.self_weight = 1, .in = {{Rank{9}, 1}}, .out = {}}, false), ErrorCode::Input,
         {"worker 9"});
}

}  // namespace
}  // namespace starling::test
