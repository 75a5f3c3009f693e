// Order and bounds, sample path by sample path where that holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "starling/base/random.h"
#include "starling/model/closed_forms.h"
#include "tests/model/case.h"

namespace starling::model {
namespace {

void expect_no_later(const std::vector<std::vector<double>>& a,
                     const std::vector<std::vector<double>>& b, const std::string& what) {
  for (std::size_t t = 0; t < a.size(); ++t) {
    for (std::size_t i = 0; i < a[t].size(); ++i) {
      ASSERT_LE(a[t][i], b[t][i] + 1e-9) << what << ", step " << t << ", worker " << i;
    }
  }
}

// Rows whose recurrences are max-plus linear. (When needed, and first arrived, are not: who comes
// later may start a round later, and so find more in it.)
const char* const kWaiting[] = {"all-reduce", "local-sgd",      "d-psgd",
                                "sgp",        "overlapped-sgp", "dadam"};

TEST(Monotone, LongerTasksNeverEndAStepEarlier) {
  for (const char* algorithm : kWaiting) {
    const Case from{.algorithm = algorithm,
                    .schedule = std::string(topology::find_algorithm(algorithm).schedules[0]),
                    .variance = 0.02,
                    .buckets = 3,
                    .update = 0.06,
                    .costs = {0.2, 0.7, 0.8},
                    .steps = 60};
    const Ready ready(from);
    const auto base = worker_ends(ready.setting);
    RandomSequence random(Random(5));
    for (int trial = 0; trial < 12; ++trial) {
      Setting more = ready.setting;
      const auto bucket = static_cast<std::size_t>(random.below(3));
      const auto worker = static_cast<std::uint32_t>(random.below(16));
      const auto step = static_cast<std::int64_t>(random.below(60));
      more.updates[bucket] += 0.05;
      expect_no_later(base, worker_ends(more), std::string(algorithm) + " update");
      more = ready.setting;
      more.times = [&](Rank r, Step t) {
        StepTime time = ready.setting.times(r, t);
        time.backward += r.value == worker && t.value == step ? 0.8 : 0;
        return time;
      };
      expect_no_later(base, worker_ends(more), std::string(algorithm) + " computation");
      more = ready.setting;
      BucketSeconds inside(3, 0.2 / 3);
      BucketSeconds across(3, 0.7 / 3);
      BucketSeconds everybody(3, 0.8 / 3);
      inside[bucket] += 0.1;
      across[bucket] += 0.1;
      everybody[bucket] += 0.1;
      const TableCosts costs(16, 4, {{.inside = inside, .across = across}}, everybody);
      more.costs = &costs;
      expect_no_later(base, worker_ends(more), std::string(algorithm) + " exchange");
    }
  }
}

TEST(Monotone, CompleteWithOneBucketIsNeverLaterThanAllReduce) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Case from{.workers = 8,
              .variance = 0.04,
              .update = 0.05,
              .costs = all_the_same(0.1 * static_cast<double>(seed)),
              .steps = 100,
              .seed = seed};
    const auto complete = worker_ends(Ready(from).setting);
    from.algorithm = "all-reduce";
    expect_no_later(complete, worker_ends(Ready(from).setting), "complete");
  }
}

TEST(Monotone, AllReduceGrowsWithVarianceAndWorkers) {
  double last = 0;
  for (const double variance : {0.0, .0017, .0134, .04}) {
    const double step = step_of({.algorithm = "all-reduce", .variance = variance, .steps = 2000});
    EXPECT_GT(step, last);
    last = step;
  }
  last = 0;
  for (const std::uint32_t workers : {2, 4, 8, 16, 32}) {
    const double step =
        step_of({.algorithm = "all-reduce", .workers = workers, .variance = .0134, .steps = 2000});
    EXPECT_GT(step, last);
    last = step;
  }
}

TEST(Monotone, DecentralizedIsBoundedBelow) {
  for (const char* schedule : {"complete", "ring", "exponential", "aer"}) {
    for (const double c : {0.0, 0.8, 1.5, 4.0}) {
      const Ready ready({.schedule = schedule,
                         .variance = .0134,
                         .buckets = 4,
                         .update = 0.02,
                         .costs = {.2 * c, c, c},
                         .steps = 4000});
      const Prediction prediction = predict(ready.setting);
      EXPECT_GE(prediction.step, behind_bound(1, 0.02, prediction.exchange) - 0.001);
      EXPECT_GE(prediction.overlap, 0);
      EXPECT_LE(prediction.overlap, 1);
    }
  }
}

TEST(Monotone, OrderOfSchedulesWithEqualCosts) {
  for (const std::uint32_t workers : {8, 16, 32}) {
    for (const double c : {0.0, 0.5}) {
      Case from{.workers = workers,
                .variance = .0134,
                .buckets = 4,
                .costs = all_the_same(c),
                .steps = 6000};
      double last = 0;
      for (const char* schedule : {"ring", "exponential", "aer", "complete"}) {
        from.schedule = schedule;
        const double step = step_of(from);
        EXPECT_GE(step, last - 0.001) << schedule << ", " << workers << " workers, c " << c;
        last = step;
      }
      from.algorithm = "all-reduce";
      from.schedule = "complete";
      EXPECT_GT(step_of(from), last);
    }
  }
}

TEST(Monotone, WaitingIsWhatStepsTakeBeyondTheirWork) {
  for (const topology::Algorithm& row : topology::algorithms()) {
    if (row.name == "ad-psgd") {
      continue;  // its steps end when their rounds have, which nobody waits for
    }
    const Ready ready({.algorithm = std::string(row.name),
                       .schedule = std::string(row.schedules[0]),
                       .variance = 0.03,
                       .buckets = 2,
                       .update = 0.05,
                       .costs = {.3, .9, 1.1},
                       .steps = 3000});
    const Prediction prediction = predict(ready.setting);
    const double waited = prediction.waiting.straggler + prediction.waiting.exchange;
    EXPECT_NEAR(prediction.step, 1.05 + waited, 0.003) << row.name;
  }
}

}  // namespace
}  // namespace starling::model
