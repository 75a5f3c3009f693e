// Step times that papers measured, and what the model makes of them: examples that must not drift.
#include <gtest/gtest.h>

#include <algorithm>

#include "starling/base/step_times.h"
#include "starling/model/closed_forms.h"
#include "starling/model/link_costs.h"
#include "tests/model/case.h"

namespace starling::model {
namespace {

// --- A transformer of 0.26 GB on nodes of four A40, 25 Gb/s Ethernet; milliseconds ---

double milliseconds(double seconds) { return 1000 * seconds; }

TEST(Published, OnePeerExponentialOnSlowEthernet) {
  // 30 ms in each of the two phases inside nodes, 164 in the others: measured were 97.4 and 110.8.
  Case from{.schedule = "exponential",
            .mean = 0.030,
            .buckets = 10,
            .costs = {.inside = 0.0304, .across = 0.1644}};
  EXPECT_NEAR(milliseconds(step_of(from)), 97.4, 0.1);
  from.workers = 32;
  EXPECT_NEAR(milliseconds(step_of(from)), 110.8, 0.1);
}

// The links that give those 164 ms: four flows per card at once, 6.3 GB/s in all.
TEST(Published, FourFlowsPerCard) {
  const LinkCosts costs({.bandwidth = 6.34e9, .local_bandwidth = 8.7e9, .per_node = 4},
                        {Bytes{260'000'000}});
  Ready ready({.schedule = "exponential", .mean = 0.030});
  ready.setting.costs = &costs;
  EXPECT_NEAR(milliseconds(predict(ready.setting).step), 97.4, 0.5);
}

// What a card serves: to one ring, and to four flows at once.
constexpr double kOneRing = 3.1e9;
constexpr double kFourFlows = 6.34e9;
constexpr double kUpdate = 0.002;
constexpr double kOfEight = 0.1175;  // seconds that 8 workers compute

// A ring of 16 at 3.1 GB/s: 1.875 · 0.26 GB take 157 ms. Computation is what all-reduce takes
// beside at 16 workers, (φ + β_1) E[M] + U = 38.2 ms; with as many samples for all it is in inverse
// proportion to workers.
double computation(std::uint32_t workers) {
  return (0.0382 - kUpdate) / 0.4 / (1 + std::sqrt(.0134) * expected_maximum(16)) * 16 /
         static_cast<double>(workers);
}

double on_slow_ethernet(const char* algorithm, const char* schedule, std::uint32_t workers,
                        double bandwidth, double mean) {
  const std::size_t buckets = 10;
  const std::vector<Bytes> sizes(buckets, Bytes{26'000'000});
  const LinkCosts costs({.bandwidth = bandwidth, .local_bandwidth = 8.7e9, .per_node = 4}, sizes);
  Ready ready({.algorithm = algorithm,
               .schedule = schedule,
               .workers = workers,
               .mean = mean,
               .variance = .0134 * mean * mean,
               .buckets = buckets,
               .update = kUpdate,
               .steps = 4000});
  ready.setting.costs = &costs;
  return milliseconds(predict(ready.setting).step);
}
double on_slow_ethernet(const char* algorithm, const char* schedule, std::uint32_t workers,
                        double bandwidth) {
  return on_slow_ethernet(algorithm, schedule, workers, bandwidth, computation(workers));
}

TEST(Published, CompleteAndAllReduceOnSlowEthernet) {
  EXPECT_NEAR(on_slow_ethernet("dadam", "complete", 16, kOneRing), 157.3, 0.5);
  EXPECT_NEAR(on_slow_ethernet("all-reduce", "complete", 16, kOneRing), 195.5, 0.5);
  // Measured: 188.5.
  EXPECT_NEAR(on_slow_ethernet("all-reduce", "complete", 32, kOneRing), 188.5, 0.04 * 188.5);
}

// AER hides its exchanges on 16 workers (measured: 78.9), if a card serves four flows at once; on
// 32 with half the computation (67.9) it lies between what a card serves to four flows and to one
// ring.
TEST(Published, AerOnSlowEthernet) {
  EXPECT_NEAR(on_slow_ethernet("dadam", "aer", 16, kFourFlows), 78.9, 0.01 * 78.9);
  EXPECT_LT(on_slow_ethernet("dadam", "aer", 32, kFourFlows), 67.9);
  EXPECT_GT(on_slow_ethernet("dadam", "aer", 32, kOneRing), 67.9);
}

// On 8 workers computation in proportion (150 ms) would be longer than whole steps were. Fitted to
// AER it is 117.5 ms; one-peer exponential then follows, and all-reduce (166.1) lies between what a
// card serves to four flows and to one ring.
TEST(Published, EightWorkersOnSlowEthernet) {
  EXPECT_GT(milliseconds(computation(8)), 122.8);
  EXPECT_NEAR(on_slow_ethernet("dadam", "aer", 8, kFourFlows, kOfEight), 122.0, 0.005 * 122.0);
  EXPECT_NEAR(on_slow_ethernet("dadam", "exponential", 8, kFourFlows, kOfEight), 122.8,
              0.005 * 122.8);
  EXPECT_LT(on_slow_ethernet("all-reduce", "complete", 8, kFourFlows, kOfEight), 166.1);
  EXPECT_GT(on_slow_ethernet("all-reduce", "complete", 8, kOneRing, kOfEight), 166.1);
}

// SGP took longer than decentralized Adam on its exponential schedule, and far less than a model
// that is sent after the update. Sent at once beside the computation (overlapped), on 8 workers it
// would have been 8 % faster than measured, on 16 and 32 slower by a quarter and an eighth: there
// the fit contradicts. In which order and in which buckets it was sent is not known.
TEST(Published, SgpOnSlowEthernet) {
  struct Row {
    std::uint32_t workers;
    double mean;
    double measured;
    double of_overlapped;
  };
  const Row rows[] = {{8, kOfEight, 150.5, 1.077},
                      {16, computation(16), 99.9, 0.793},
                      {32, computation(32), 112.4, 0.895}};
  for (const Row& row : rows) {
    const auto predicted = [&](const char* algorithm) {
      return on_slow_ethernet(algorithm, "push", row.workers, kFourFlows, row.mean);
    };
    EXPECT_NEAR(row.measured / predicted("overlapped-sgp"), row.of_overlapped, 0.01) << row.workers;
    EXPECT_LT(1.4 * row.measured, predicted("sgp")) << row.workers;
  }
}

TEST(Published, VarianceAloneExplainsFastNetworks) {
  struct Row {
    std::uint32_t workers;
    std::uint32_t per_node;
    double gain;
  };
  const Row rows[] = {{8, 4, 1.145},  {16, 4, 1.181}, {32, 4, 1.212},
                      {16, 8, 1.179}, {32, 8, 1.210}, {64, 8, 1.238}};
  for (const Row& row : rows) {
    Case from{.schedule = "aer",
              .workers = row.workers,
              .per_node = row.per_node,
              .variance = .0134,
              .buckets = 4,
              .steps = 3000};
    const double aer = step_of(from);
    from.algorithm = "all-reduce";
    from.schedule = "complete";
    EXPECT_NEAR(step_of(from) / aer, row.gain, 0.005 * row.gain)
        << row.workers << " workers, " << row.per_node << " per node";
  }
}

// --- WAGMA: a simple model that was fitted to its figures ---

// Collecting experience, without the one step of 43.5 s; and 0.45 s of learning.
Times navigation(std::uint64_t seed) {
  const StepTimes::Bin bins[] = {{1.72, 1.778, 1250}, {1.778, 1.806, 1250}, {1.806, 1.876, 1250},
                                 {1.876, 2.02, 736},  {2.02, 2.2, 182},     {2.2, 2.4, 39},
                                 {2.4, 2.55, 52},     {4.3, 5.2, 159},      {9.4, 11, 12},
                                 {11, 12, 50},        {12, 14, 19}};
  return [times = StepTimes(bins), random = Random(seed)](Rank worker, Step step) {
    const double collect =
        times.draw(random.stream(worker.value), static_cast<std::uint64_t>(step.value));
    return StepTime{.forward = collect, .backward = 0.45};
  };
}

struct Pair {
  double sync;
  double wagma;
};
Pair steps_of(std::uint32_t workers, const Times& times, std::uint32_t tau, const Costs& costs,
              std::uint64_t steps) {
  Case from{.schedule = "groups",
            .workers = workers,
            .per_node = 1,
            .costs = costs,
            .steps = steps,
            .group_size = topology::default_group_size(workers)};
  from.algorithm = "wagma";
  Ready wagma(from);
  wagma.setting.times = times;
  wagma.setting.sync_period = tau;
  from.algorithm = "all-reduce";
  from.schedule = "complete";
  Ready all(from);
  all.setting.times = times;
  return {predict(all.setting).step, predict(wagma.setting).step};
}

TEST(Published, WagmaOnNavigation) {
  const std::uint32_t workers[] = {16, 64, 256, 1024};
  const Pair fitted[] = {{5.83, 3.78}, {9.88, 4.23}, {13.0, 4.86}, {13.9, 5.44}};
  const double measured_gain[] = {1.29, 2.01, 2.18, 2.33};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint64_t steps = std::max<std::uint64_t>(400, 80000 / workers[i]);
    const Pair steps_here = steps_of(workers[i], navigation(3), 8, {.05, .05, .2},
                                     std::min<std::uint64_t>(steps, 4000));
    EXPECT_NEAR(steps_here.sync, fitted[i].sync, 0.06 * fitted[i].sync) << workers[i];
    EXPECT_NEAR(steps_here.wagma, fitted[i].wagma, 0.06 * fitted[i].wagma) << workers[i];
    // It promises more than was measured, by up to a quarter.
    const double gain = steps_here.sync / steps_here.wagma;
    EXPECT_GT(gain, measured_gain[i]);
    EXPECT_LT(gain, 1.35 * measured_gain[i]);
  }
}

TEST(Published, WagmaOnImagesWithTwoLateWorkers) {
  const std::uint32_t workers[] = {4, 16, 64, 256};
  const double fitted[] = {.80, .70, .66, .65};
  for (std::size_t i = 0; i < 4; ++i) {
    const Delay delay("2x0.32", workers[i], 5);
    const Times times = times_of(ComputeTimes("constant:0.575", 5), delay);
    const Pair steps_here = steps_of(workers[i], times, 10, {.03, .03, .05}, 1000);
    EXPECT_NEAR(steps_here.sync, .945, 1e-6) << workers[i];
    EXPECT_NEAR(steps_here.wagma, fitted[i], 0.06 * fitted[i]) << workers[i];
  }
}

}  // namespace
}  // namespace starling::model
