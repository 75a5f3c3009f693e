// Limits: no variance and no cost, slow networks, many buckets, no forward pass.
#include <gtest/gtest.h>

#include "tests/model/case.h"

namespace starling::model {
namespace {

TEST(Limits, WithoutVarianceAndCostEveryRowTakesComputationAndUpdate) {
  for (const topology::Algorithm& row : topology::algorithms()) {
    for (const std::string_view schedule : row.schedules) {
      for (const std::size_t buckets : {1, 3}) {
        for (const bool overlap : {true, false}) {
          Ready ready({.algorithm = std::string(row.name),
                       .schedule = std::string(schedule),
                       .buckets = buckets,
                       .update = 0.06,
                       .steps = 100});
          ready.setting.overlap = overlap;
          const Prediction prediction = predict(ready.setting);
          EXPECT_NEAR(prediction.step, 1.06, 1e-9) << row.name << " on " << schedule;
          EXPECT_NEAR(prediction.update, 0.06, 1e-9) << row.name << " on " << schedule;
          EXPECT_NEAR(prediction.waiting.straggler + prediction.waiting.exchange, 0, 1e-9);
          EXPECT_NEAR(prediction.interval.value(), 0, 1e-9);
          EXPECT_EQ(prediction.overlap, 1);
          EXPECT_EQ(prediction.stale, 0) << row.name << " on " << schedule;
        }
      }
    }
  }
}

TEST(Limits, FewerThanTwentyStepsHaveNoInterval) {
  EXPECT_FALSE(predict(Ready({.variance = 0.01, .steps = 19}).setting).interval);
  EXPECT_GT(predict(Ready({.variance = 0.01, .steps = 20}).setting).interval.value(), 0);
}

TEST(Limits, SlowNetworks) {
  const double c = 1000;
  Case from{.buckets = 10, .costs = {.inside = .1 * c, .across = .933 * c, .everybody = c}};
  from.algorithm = "all-reduce";
  const double all = step_of(from);
  from.algorithm = "dadam";
  EXPECT_NEAR(all / step_of(from), 1, 0.001);
  from.schedule = "aer";
  EXPECT_NEAR(all / step_of(from), 2 / (.933 + .1), 0.002);
}

TEST(Limits, MoreBucketsNeverHurtWithoutVariance) {
  for (const char* algorithm : {"all-reduce", "dadam"}) {
    for (const char* schedule : {"complete", "aer", "ring", "exponential"}) {
      for (const double c : {0.3, 1.0, 2.0}) {
        double last = 1e9;
        for (const std::size_t buckets : {1, 2, 4, 8}) {
          const double step = step_of({.algorithm = algorithm,
                                       .schedule = schedule,
                                       .buckets = buckets,
                                       .update = 0.02,
                                       .costs = {0.2 * c, c, c}});
          EXPECT_LE(step, last + 1e-9) << algorithm << " " << schedule << " " << c;
          last = step;
        }
      }
    }
  }
}

TEST(Limits, WithVarianceMoreBucketsMayCostALittle) {
  const std::pair<std::size_t, double> known[] = {{1, 1.057}, {4, 1.059}, {10, 1.059}};
  for (const auto& [buckets, step] : known) {
    EXPECT_NEAR(step_of({.schedule = "ring",
                         .variance = .04,
                         .buckets = buckets,
                         .update = .02,
                         .steps = 40000}),
                step, 0.001);
  }
}

TEST(Limits, WithoutForwardPassAllReduceExposesOnlyTheLastBucket) {
  for (const std::size_t buckets : {1, 2, 5}) {
    for (const double c : {0.2, 0.7, 1.0}) {
      EXPECT_NEAR(step_of({.algorithm = "all-reduce",
                           .forward = 0,
                           .buckets = buckets,
                           .update = 0.03,
                           .costs = all_the_same(c),
                           .steps = 50}),
                  1 + c / static_cast<double>(buckets) + 0.03, 1e-9);
    }
  }
}

}  // namespace
}  // namespace starling::model
