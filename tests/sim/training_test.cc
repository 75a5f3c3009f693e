// Training in virtual time against what is known of it: nothing costs nothing, closed forms, who
// waits for whom, how old contributions are.
#include "starling/sim/training.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/sim/collective.h"
#include "starling/topology/algorithm.h"

namespace starling::sim {
namespace {

TrainingOptions options_of(std::string_view algorithm, std::size_t workers, std::uint64_t steps) {
  TrainingOptions options;
  options.plan.algorithm = algorithm;
  options.plan.steps = steps;
  options.plan.seed = options.network.seed = 1;
  options.network.ports.workers = workers;
  options.bytes = Bytes{4'000'000};
  return options;
}

// Messages that take no time.
void make_free(TrainingOptions& options) {
  PortOptions& ports = options.network.ports;
  ports.latency = ports.local_latency = 0;
  ports.bandwidth = ports.local_bandwidth = 1e18;
}

TEST(Training, WithoutCostsAStepTakesAsLongAsItComputesAndUpdates) {
  for (const topology::Algorithm& row : topology::algorithms()) {
    TrainingOptions options = options_of(row.name, 8, 12);
    make_free(options);
    options.buckets = 4;
    options.compute = ComputeTimes("0.1:0.2", 1);
    options.update = 0.04;
    const TrainingResult result = simulate_training(options);
    EXPECT_NEAR(result.step_seconds, 0.34, 1e-6) << row.name;
    EXPECT_NEAR(result.own_step_seconds, 0.34, 1e-6) << row.name;
    EXPECT_NEAR(result.shares.compute, 0.3, 1e-6) << row.name;
    EXPECT_NEAR(result.shares.update, 0.04, 1e-6) << row.name;
    EXPECT_LT(result.shares.straggler + result.shares.exchange, 1e-6) << row.name;
  }
}

TEST(Training, SharesOfAStepAddUpToIt) {
  for (const topology::Algorithm& row : topology::algorithms()) {
    TrainingOptions options = options_of(row.name, 16, 20);
    options.buckets = 3;
    options.compute = ComputeTimes("0.001:0.002:0.5", 3);
    options.update = 2e-4;
    options.delay = Delay("2x0.004", 16, 1);
    const TrainingResult result = simulate_training(options);
    const StepShares& s = result.shares;
    EXPECT_NEAR(s.compute + s.delay + s.straggler + s.exchange + s.update, result.own_step_seconds,
                1e-7)
        << row.name;
    EXPECT_NEAR(s.delay, 0.004 * 2 / 16, 1e-9) << row.name;
    EXPECT_LE(result.own_step_seconds, result.step_seconds + 1e-12) << row.name;
  }
}

TEST(Training, TheSameSeedIsTheSameRun) {
  for (const char* name : {"wagma", "starling", "sgp"}) {
    TrainingOptions options = options_of(name, 64, 20);
    options.compute = ComputeTimes("draw:navigation:2.10", 5);
    const TrainingResult first = simulate_training(options);
    const TrainingResult second = simulate_training(options);
    EXPECT_EQ(first.trace, second.trace) << name;
    EXPECT_EQ(first.seconds, second.seconds) << name;
    EXPECT_EQ(first.ages, second.ages) << name;
    options.compute = ComputeTimes("draw:navigation:2.10", 6);
    EXPECT_NE(simulate_training(options).seconds, first.seconds) << name;
  }
}

double all_reduce_seconds(const TrainingOptions& options, std::size_t bytes) {
  CollectiveOptions one;
  one.network = options.network;
  one.bytes = Bytes{bytes};
  one.group_size = options.network.ports.workers;
  return simulate(one).seconds;
}

// Buckets are exchanged in order, each when its part of the backward pass is done: U + the maximum
// over k of (a_k T + the exchanges of k and those after it).
TEST(Training, AllReduceOverlapsTheBackwardPassAsItsClosedFormSays) {
  constexpr std::size_t kBuckets = 4;
  constexpr double kForward = 0.001;
  for (const double backward : {0.0002, 0.0004, 0.001, 0.01}) {
    TrainingOptions options = options_of("all-reduce", 8, 10);
    options.buckets = kBuckets;
    options.update = 0.0003;
    options.compute = ComputeTimes(fmt::format("{}:{}", kForward, backward), 1);
    const double one = all_reduce_seconds(options, options.bytes.value / kBuckets);
    double expected = 0;
    for (std::size_t k = 0; k < kBuckets; ++k) {
      const double there = kForward + backward * static_cast<double>(k + 1) / kBuckets;
      expected = std::max(expected, there + one * static_cast<double>(kBuckets - k));
    }
    const TrainingResult result = simulate_training(options);
    // A sync ends with a barrier, of a few latencies.
    EXPECT_NEAR(result.step_seconds, expected + options.update, 0.02 * expected + 4e-5) << backward;
    EXPECT_GE(result.step_seconds, expected + options.update - 1e-6) << backward;
  }
}

// One step behind: R = max(T + U, all exchanges, the longest (u + c) of a bucket).
TEST(Training, OneStepBehindHidesExchangesAsItsClosedFormSays) {
  constexpr std::size_t kBuckets = 4;
  for (const double compute : {0.0003, 0.0006, 0.003}) {
    TrainingOptions options = options_of("dadam", 4, 60);
    options.plan.schedule = "complete";
    options.buckets = kBuckets;
    options.update = 0.0002;
    options.compute = ComputeTimes(fmt::format("constant:{}", compute), 1);
    const double c = all_reduce_seconds(options, options.bytes.value / kBuckets);
    const double expected =
        std::max({compute + options.update, kBuckets * c, options.update / kBuckets + c});
    const TrainingResult result = simulate_training(options);
    EXPECT_NEAR(result.step_seconds, expected, 0.02 * expected) << compute;
  }
}

TEST(Training, WithoutOverlapTheExchangeIsInsideTheStep) {
  for (const char* name : {"dadam", "starling"}) {
    TrainingOptions options = options_of(name, 4, 30);
    options.compute = ComputeTimes("constant:0.01", 1);
    const double hidden = simulate_training(options).step_seconds;
    options.plan.overlap = false;
    const TrainingResult inside = simulate_training(options);
    EXPECT_NEAR(hidden, 0.01, 1e-5) << name;
    EXPECT_GT(inside.step_seconds, hidden + 2e-4) << name;
    EXPECT_GT(inside.shares.exchange, 2e-4) << name;
  }
}

TEST(Training, OneSlowWorkerIsWhatTheOthersWaitFor) {
  TrainingOptions options = options_of("local-sgd", 8, 10);
  make_free(options);
  options.plan.sync_period = 1;
  options.compute = ComputeTimes("constant:0.1", 1);
  options.delay = Delay("rank:3:0.05", 8, 1);
  const TrainingResult result = simulate_training(options);
  EXPECT_NEAR(result.step_seconds, 0.15, 1e-6);
  EXPECT_NEAR(result.shares.straggler, 0.05 * 7 / 8, 1e-6);
  EXPECT_NEAR(result.shares.exchange, 0, 1e-6);
}

TEST(Training, WagmaLeavesStragglersBehindUntilTheSync) {
  TrainingOptions options = options_of("wagma", 16, 40);
  options.plan.sync_period = 10;
  options.compute = ComputeTimes("constant:0.1", 1);
  options.delay = Delay("rank:3:0.05", 16, 1);
  const TrainingResult wagma = simulate_training(options);
  // At each sync everyone waits for what worker 3 has fallen behind; in between nobody does.
  EXPECT_NEAR(wagma.step_seconds, 0.15, 0.001);
  EXPECT_EQ(wagma.syncs, 16U * 4);
  EXPECT_EQ(wagma.rounds, 16U * 40);
  // Of 9 free rounds in 10: worker 3 is late in all.
  EXPECT_NEAR(wagma.stale_fraction, 1.0 / 16, 0.01);
  // It falls behind by a step every two: at most 4 in a period.
  EXPECT_LE(wagma.ages.rbegin()->first, 4);
  EXPECT_GE(wagma.ages.rbegin()->first, 2);

  // Drawn anew at each step, lateness averages out in between.
  options.delay = Delay("2x0.05", 16, 1);
  const double drawn = simulate_training(options).step_seconds;
  options.plan.algorithm = "all-reduce";
  EXPECT_LT(drawn, 0.9 * simulate_training(options).step_seconds);
}

TEST(Training, NothingIsOldWhereEveryoneIsWaitedFor) {
  for (const char* name : {"all-reduce", "d-psgd", "sgp", "dadam"}) {
    TrainingOptions options = options_of(name, 9, 15);
    options.compute = ComputeTimes("0.001:0.002:1", 2);
    const TrainingResult result = simulate_training(options);
    EXPECT_EQ(result.stale_fraction, 0) << name;
    ASSERT_EQ(result.ages.size(), 1U) << name;
    EXPECT_EQ(result.ages.begin()->first, 0) << name;
  }
}

TEST(Training, ACardCarriesWhatItsWorkersSendToOtherNodes) {
  TrainingOptions options = options_of("d-psgd", 8, 5);
  options.compute = ComputeTimes("constant:0.1", 1);
  // To both neighbours on a ring.
  const TrainingResult alone = simulate_training(options);
  EXPECT_NEAR(alone.card_bytes_per_step, 8e6, 0.01 * 8e6);
  options.network.ports.per_node = 4;
  const TrainingResult shared = simulate_training(options);
  EXPECT_NEAR(shared.card_bytes_per_step, 8e6, 0.01 * 8e6) << "one neighbour at each end";
}

TEST(Training, SlicesOfATrackDoNotOverlap) {
  for (const topology::Algorithm& row : topology::algorithms()) {
    TrainingOptions options = options_of(row.name, 6, 10);
    options.buckets = 2;
    options.compute = ComputeTimes("0.001:0.002:0.5", 4);
    options.update = 1e-4;
    options.trace_workers = 3;
    options.trace_steps = 6;
    std::map<std::pair<Rank, bool>, std::vector<Slice>> tracks;
    for (const Slice& slice : simulate_training(options).slices) {
      EXPECT_LT(slice.worker.value, 3U) << row.name;
      EXPECT_LT(slice.number, 6) << row.name;
      tracks[{slice.worker, slice.what == Slice::What::Exchange}].push_back(slice);
    }
    EXPECT_GE(tracks.size(), 6U) << row.name;
    for (auto& [track, slices] : tracks) {
      std::sort(slices.begin(), slices.end(),
                [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
      for (std::size_t i = 0; i + 1 < slices.size(); ++i) {
        EXPECT_LE(slices[i].end, slices[i + 1].begin)
            << row.name << " worker " << track.first.value;
      }
    }
  }
}

TEST(Training, WhatMakesNoSenseIsRefused) {
  const auto refusal = [](const auto& change) {
    TrainingOptions options = options_of("wagma", 4, 3);
    change(options);
    try {
      simulate_training(options);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::Input);
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal([](auto& o) { o.buckets = 255; }), "");
  EXPECT_NE(refusal([](auto& o) { o.bytes = Bytes{8}, o.buckets = 3; }), "");
  EXPECT_NE(refusal([](auto& o) { o.bytes = Bytes{7}; }), "");
  EXPECT_NE(refusal([](auto& o) { o.plan.group_size = 5; }), "");
  EXPECT_NE(refusal([](auto& o) { o.network.ports.per_node = 5; }), "");
  EXPECT_NE(refusal([](auto& o) { o.plan.steps = 1'000'000'000; }), "");
}

}  // namespace
}  // namespace starling::sim
