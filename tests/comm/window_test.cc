#include "starling/comm/window.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/random.h"
#include "starling/base/running.h"
#include "starling/comm/broadcast.h"
#include "starling/sim/cluster.h"

namespace starling::comm {
namespace {

TEST(Window, AdmitsUpToItsLimit) {
  Window window(4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(window.admits(1));
    window.sent(1);
  }
  EXPECT_FALSE(window.admits(1));
  EXPECT_EQ(window.unacknowledged(), 4u);
  window.acknowledged({.operation = 1, .count = 3});
  EXPECT_EQ(window.unacknowledged(), 1u);
  EXPECT_TRUE(window.admits(1));
}

TEST(Window, ALaterOperationCannotHoldBackAnEarlierOne) {
  Window window(4);
  for (int i = 0; i < 4; ++i) {
    window.sent(7);
  }
  EXPECT_FALSE(window.admits(7));
  EXPECT_FALSE(window.admits(8));
  EXPECT_TRUE(window.admits(6));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(window.admits(6));
    window.sent(6);
  }
  EXPECT_FALSE(window.admits(6));
  EXPECT_TRUE(window.admits(5));
  window.acknowledged({.operation = 6, .count = 4});
  EXPECT_TRUE(window.admits(6));
  EXPECT_FALSE(window.admits(7)) << "its own four are still under way";
}

TEST(Window, AnEarlierOperationHoldsBackALaterOne) {
  Window window(2);
  window.sent(1);
  window.sent(1);
  EXPECT_FALSE(window.admits(2));
  window.acknowledged({.operation = 1, .count = 1});
  EXPECT_TRUE(window.admits(2));
}

TEST(Window, AcknowledgementsAreDueInBatchesOfHalfTheLimit) {
  Window window(8);
  for (int batch = 0; batch < 5; ++batch) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(window.consumed(static_cast<std::uint64_t>(batch)));
    }
    EXPECT_TRUE(window.consumed(100));
    const std::vector<AckEntry> acks = window.take_acks();
    ASSERT_EQ(acks.size(), 2u);
    EXPECT_EQ(acks[0].operation, static_cast<std::uint64_t>(batch));
    EXPECT_EQ(acks[0].count, 3u);
    EXPECT_EQ(acks[1].operation, 100u);
    EXPECT_EQ(acks[1].count, 1u);
    EXPECT_TRUE(window.take_acks().empty());
  }
}

TEST(Window, WithTheSmallestLimitEveryMessageIsAcknowledged) {
  Window window(2);
  EXPECT_TRUE(window.consumed(1));
}

TEST(Window, AcknowledgingWhatWasNeverSentIsABug) {
  Window window(4);
  window.sent(1);
  EXPECT_THROW(window.acknowledged({.operation = 2, .count = 1}), Error);
  EXPECT_THROW(window.acknowledged({.operation = 1, .count = 2}), Error);
}

// The rule in its own words, against random use.
TEST(Window, RandomUseAgreesWithTheRule) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RandomSequence draw{Random(seed)};
    const std::size_t limit = 2 + draw.below(20);
    Window window(limit);
    std::map<std::uint64_t, std::uint64_t> under_way;
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t operation = draw.below(10);
      std::uint64_t ahead = 0;
      std::uint64_t all = 0;
      for (const auto& [id, count] : under_way) {
        ahead += id <= operation ? count : 0;
        all += count;
      }
      ASSERT_EQ(window.unacknowledged(), all);
      ASSERT_EQ(window.admits(operation), ahead < limit);
      if (window.admits(operation) && draw.below(3) > 0) {
        window.sent(operation);
        ++under_way[operation];
      } else if (under_way[operation] > 0) {
        const std::uint64_t count = 1 + draw.below(under_way[operation]);
        window.acknowledged({.operation = operation, .count = count});
        under_way[operation] -= count;
      }
    }
  }
}

// --- What it is for: bounded memory at a worker that does not read
// --------------------------------

sim::ClusterOptions options_of(std::size_t workers, EngineOptions engine) {
  return {.network = {.ports = {.workers = workers}}, .engine = engine};
}

std::vector<Rank> first(std::size_t workers) {
  std::vector<Rank> members;
  for (std::uint32_t r = 0; r < workers; ++r) {
    members.push_back(Rank{r});
  }
  return members;
}

Task<void> broadcast_number(Engine& engine, std::uint64_t id, std::vector<Rank> members) {
  const std::vector<double> in(1, static_cast<double>(id));
  std::vector<double> out(1, -1);
  const ConstBuffer input = comm::input(std::span(in));
  const Buffer output = comm::output(std::span(out));
  co_await broadcast(engine, {.id = id, .members = members}, Rank{0}, input, output);
  check(out[0] == static_cast<double>(id), "broadcast {} brought {}", id, out[0]);
}

Task<void> one_after_the_other(Engine& engine, std::uint64_t count) {
  for (std::uint64_t id = 1; id <= count; ++id) {
    co_await broadcast_number(engine, id, first(engine.size()));
  }
}

Task<void> all_at_once(Engine& engine, std::uint64_t count) {
  std::vector<Running<void>> all;
  for (std::uint64_t id = 1; id <= count; ++id) {
    all.emplace_back(broadcast_number(engine, id, first(engine.size())));
  }
  for (Running<void>& one : all) {
    co_await one;
  }
}

Running<void> start(sim::Cluster& cluster, Rank rank, Task<void> program) {
  Running<void> running(std::move(program));
  while (cluster.engine(rank).run()) {
  }
  return running;
}

void run_until(sim::Cluster& cluster, double seconds) {
  Endpoint& clock = cluster.network().endpoint(Rank{0});
  const Time end(std::chrono::duration_cast<Duration>(Seconds(seconds)));
  while (clock.now() < end) {
    clock.wait(end);
  }
}

class ManyBroadcasts
    : public testing::TestWithParam<Task<void> (*)(Engine& engine, std::uint64_t count)> {};

TEST_P(ManyBroadcasts, ToAStoppedPeerStayAtTheLimitAndGoOnAfterwards) {
  constexpr std::uint64_t kCount = 10'000;
  constexpr std::size_t kLimit = 16;
  sim::Cluster cluster(options_of(2, {.window = kLimit}));
  cluster.network().stop(Rank{1});
  Running<void> root = start(cluster, Rank{0}, GetParam()(cluster.engine(Rank{0}), kCount));
  Running<void> reader = start(cluster, Rank{1}, GetParam()(cluster.engine(Rank{1}), kCount));
  run_until(cluster, 60);
  EXPECT_FALSE(root.done());
  EXPECT_EQ(cluster.network().sent_by(Rank{0}).messages, kLimit);
  cluster.network().resume(Rank{1});
  run_until(cluster, 120);
  ASSERT_TRUE(root.done());
  ASSERT_TRUE(reader.done());
  EXPECT_NO_THROW(root.take());
  EXPECT_NO_THROW(reader.take());
  EXPECT_EQ(cluster.network().sent_by(Rank{0}).messages, kCount);
  EXPECT_EQ(cluster.network().sent_by(Rank{1}).messages, kCount / (kLimit / 2))
      << "one acknowledgement for half a window";
}

INSTANTIATE_TEST_SUITE_P(Window, ManyBroadcasts, testing::Values(one_after_the_other, all_at_once));

TEST(Window, ALargeBroadcastToAStoppedPeerStaysAtTheLimit) {
  constexpr std::size_t kChunk = 8192;
  constexpr std::size_t kChunks = 100;
  constexpr std::size_t kLimit = 8;
  sim::Cluster cluster(options_of(3, {.chunk = kChunk, .window = kLimit}));
  const auto program = [](Engine& engine) -> Task<void> {
    const std::vector<float> in(2 * kChunks * kChunk / 4, 1.5F);
    std::vector<float> out(in.size());
    const std::vector<Rank> members = first(3);
    const ConstBuffer input = comm::input(std::span(in));
    const Buffer output = comm::output(std::span(out));
    co_await broadcast(engine, {.id = 1, .members = members}, Rank{0}, input, output);
    check(out == in, "the broadcast brought something else");
  };
  cluster.network().stop(Rank{2});
  std::vector<Running<void>> all;
  for (std::uint32_t r = 0; r < 3; ++r) {
    all.push_back(start(cluster, Rank{r}, program(cluster.engine(Rank{r}))));
  }
  run_until(cluster, 60);
  EXPECT_FALSE(all[0].done());
  EXPECT_LE(cluster.network().sent_by(Rank{0}).messages, 2 * kLimit + 2)
      << "to each of the others a window, one more to the one that takes, and a greeting";
  cluster.network().resume(Rank{2});
  run_until(cluster, 120);
  for (Running<void>& one : all) {
    ASSERT_TRUE(one.done());
    EXPECT_NO_THROW(one.take());
  }
}

}  // namespace
}  // namespace starling::comm
