// The recurrences against what can be computed without them.
#include "starling/model/closed_forms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "starling/base/random.h"
#include "tests/model/case.h"

namespace starling::model {
namespace {

// Shares, costs and updates of a few buckets, in hundredths, so that no two circuits are nearly
// alike and the end of the transient is soon.
struct Drawn {
  std::vector<double> shares;
  std::vector<double> c;
  std::vector<double> u;
};
Drawn draw(RandomSequence& random) {
  Drawn drawn;
  const std::size_t buckets = 1 + random.below(5);
  double sum = 0;
  for (std::size_t k = 0; k < buckets; ++k) {
    drawn.shares.push_back(1 + static_cast<double>(random.below(20)));
    sum += drawn.shares.back();
    drawn.c.push_back(static_cast<double>(random.below(80)) / 100);
    drawn.u.push_back(static_cast<double>(random.below(10)) / 100);
  }
  for (double& share : drawn.shares) {
    share /= sum;
  }
  return drawn;
}

double total(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum;
}

TEST(ClosedForms, ExpectedMaximaOfNormalValues) {
  const std::pair<std::uint32_t, double> known[] = {
      {1, 0}, {2, 0.5641895835}, {4, 1.029}, {8, 1.424}, {16, 1.766}, {32, 2.070}, {64, 2.344}};
  for (const auto& [count, mean] : known) {
    EXPECT_NEAR(expected_maximum(count), mean, 6e-4) << count;
  }
  EXPECT_NEAR(expected_maximum(2), 1 / std::sqrt(std::acos(-1.0)), 1e-10);
}

TEST(ClosedForms, DeterministicStepsAreExact) {
  RandomSequence random(Random(11));
  for (int instance = 0; instance < 300; ++instance) {
    const Drawn drawn = draw(random);
    const double forward = 0.1 * static_cast<double>(random.below(8));
    const TableCosts costs(4, 4, {{.inside = drawn.c, .across = drawn.c}}, drawn.c);
    Ready ready({.workers = 4, .per_node = 4, .forward = forward, .steps = 2000});
    ready.setting.costs = &costs;
    ready.setting.buckets = drawn.c.size();
    ready.setting.shares = drawn.shares;
    ready.setting.updates = drawn.u;
    const double behind = predict(ready.setting).step;
    EXPECT_NEAR(behind, behind_step(1, drawn.c, drawn.u), 1e-9) << instance;

    ready.setting.algorithm = &topology::find_algorithm("all-reduce");
    const Computation computation{.forward = forward, .shares = drawn.shares};
    const double all = predict(ready.setting).step;
    EXPECT_NEAR(all, all_reduce_step(4, computation, drawn.c, total(drawn.u)), 1e-9) << instance;
    const Bounds bounds = all_reduce_bounds(1, computation, drawn.c, total(drawn.u));
    EXPECT_GE(all, bounds.low - 1e-9);
    EXPECT_LE(all, bounds.high + 1e-9);
    EXPECT_LE(behind, all + 1e-9) << instance;
  }
}

TEST(ClosedForms, PhasesOfDifferentCost) {
  // One-peer exponential, 16 workers on nodes of 4: two phases inside, two across.
  Case from{.schedule = "exponential", .update = 0.02, .costs = {.inside = 0.4, .across = 2.0}};
  const double costs[] = {0.4, 0.4, 2.0, 2.0};
  EXPECT_NEAR(step_of(from), behind_step_of_phases(1, costs, 0.02), 1e-9);
  EXPECT_NEAR(step_of(from), 1.52, 1e-9);
  from.buckets = 4;
  EXPECT_NEAR(step_of(from), 1.3825, 1e-9);
  from.buckets = 10;
  EXPECT_NEAR(step_of(from), 1.356, 1e-9);
}

TEST(ClosedForms, OverlapAloneGainsAtMostTwo) {
  for (const double c : {0.1, 0.5, 1.0, 2.0, 5.0}) {
    const Case behind{.update = 0.02, .costs = all_the_same(c)};
    Case all = behind;
    all.algorithm = "all-reduce";
    EXPECT_NEAR(step_of(all) / step_of(behind), overlap_gain(1, c, 0.02), 1e-9);
    EXPECT_LE(overlap_gain(1, c, 0.02), 2);
  }
  EXPECT_NEAR(overlap_gain(1, 1, 0), 2, 1e-15);
}

TEST(ClosedForms, AllReduceOfNormalTimesLiesInItsInterval) {
  for (const std::size_t buckets : {1, 4}) {
    for (const double c : {0.0, 0.5, 1.0}) {
      const Case from{.algorithm = "all-reduce",
                      .variance = 0.0134,
                      .buckets = buckets,
                      .update = 0.02,
                      .costs = all_the_same(c),
                      .steps = 20000};
      const Prediction walked = predict(Ready(from).setting);
      const std::vector<double> shares(buckets, 1.0 / static_cast<double>(buckets));
      const std::vector<double> costs(buckets, c / static_cast<double>(buckets));
      const Computation computation{.variance = 0.0134, .shares = shares};
      const double exact = all_reduce_step(16, computation, costs, 0.02);
      // Three half-widths of a 95 % interval: it would fail by chance once in 10^8.
      EXPECT_NEAR(walked.step, exact, 3 * walked.interval.value());
      EXPECT_LT(walked.interval.value(), 0.002);
      const double slowest = 1 + std::sqrt(0.0134) * expected_maximum(16);
      const Bounds bounds = all_reduce_bounds(slowest, computation, costs, 0.02);
      EXPECT_GE(exact, bounds.low - 1e-9);
      EXPECT_LE(exact, bounds.high + 1e-9);
    }
  }
}

TEST(ClosedForms, ListsMustFit) {
  const double two[] = {0.5, 0.5};
  const double one[] = {1};
  EXPECT_THROW(behind_step(1, two, one), std::exception);
  EXPECT_THROW(all_reduce_step(4, {.shares = one}, two, 0), std::exception);
}

}  // namespace
}  // namespace starling::model
