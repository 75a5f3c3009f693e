// Each row by hand: who waits for whom, what late workers contribute, what switches do.
#include <gtest/gtest.h>

#include <algorithm>

#include "starling/base/error.h"
#include "tests/model/case.h"

namespace starling::model {
namespace {

// Worker 0 takes 2 instead of 1 in step 0.
Times one_spike() {
  return [](Rank worker, Step step) {
    return StepTime{.backward = worker.value == 0 && step.value == 0 ? 2.0 : 1.0};
  };
}

TEST(Rows, SgpWaitsForThoseWhoPushToItAndForThoseWhoTake) {
  Ready ready({.algorithm = "sgp",
               .schedule = "push",
               .workers = 8,
               .costs = all_the_same(0.25),
               .steps = 2});
  ready.setting.times = one_spike();
  const topology::View view = topology::View::full(8);
  const auto names = [](const std::vector<topology::Edge>& edges, Rank rank) {
    return std::any_of(edges.begin(), edges.end(),
                       [&](const topology::Edge& edge) { return edge.peer == rank; });
  };
  for (const bool push_waits : {true, false}) {
    ready.setting.push_waits = push_waits;
    const auto ends = worker_ends(ready.setting);
    int waiting = 0;
    for (std::uint32_t i = 0; i < 8; ++i) {
      const topology::Row row = ready.setting.schedule->row(Step{0}, Rank{i}, view);
      const auto& neighbours = std::get<topology::Neighbours>(row);
      const bool waits =
          i == 0 || names(neighbours.in, Rank{0}) || (push_waits && names(neighbours.out, Rank{0}));
      EXPECT_NEAR(ends[0][i], waits ? 2.25 : 1.25, 1e-12) << i;
      waiting += waits ? 1 : 0;
    }
    EXPECT_EQ(waiting, push_waits ? 3 : 2);
  }
}

TEST(Rows, OverlappedSgpHidesThePush) {
  Ready ready({.algorithm = "overlapped-sgp",
               .schedule = "push",
               .workers = 8,
               .update = 0.1,
               .costs = all_the_same(0.9),
               .steps = 50});
  Prediction prediction = predict(ready.setting);
  EXPECT_NEAR(prediction.step, 1.1, 1e-9);
  EXPECT_NEAR(prediction.overlap, 1, 1e-9);
  ready.setting.overlap = false;
  prediction = predict(ready.setting);
  EXPECT_NEAR(prediction.step, 2.0, 1e-9);
  EXPECT_NEAR(prediction.overlap, 0, 1e-9);
}

TEST(Rows, DPsgdAveragesBesideTheComputationOrAfterTheUpdate) {
  Ready ready({.algorithm = "d-psgd",
               .schedule = "ring-neighbours",
               .update = 0.1,
               .costs = all_the_same(0.7),
               .steps = 50});
  EXPECT_NEAR(predict(ready.setting).step, 1.1, 1e-9);
  ready.setting.order = Order::After;
  EXPECT_NEAR(predict(ready.setting).step, 1.8, 1e-9);
  // A spike of worker 0 reaches its two neighbours one step later, and no one else.
  ready.setting.order = Order::Beside;
  ready.setting.times = one_spike();
  const auto ends = worker_ends(ready.setting);
  EXPECT_NEAR(ends[1][0], 3.2, 1e-12);
  EXPECT_NEAR(ends[1][1], 2.9, 1e-12);  // 2.1 + 0.7, and the update
  EXPECT_NEAR(ends[1][15], 2.9, 1e-12);
  EXPECT_NEAR(ends[1][2], 2.2, 1e-12);
}

TEST(Rows, LocalSgdPaysEveryHSteps) {
  Ready ready({.algorithm = "local-sgd", .update = 0.1, .costs = all_the_same(0.5), .steps = 400});
  ready.setting.sync_period = 4;
  EXPECT_NEAR(predict(ready.setting).step, 1.1 + 0.5 / 4, 1e-9);
  ready.setting.order = Order::Beside;
  EXPECT_NEAR(predict(ready.setting).step, 1.1, 1e-9);
  ready.setting.sync_period.reset();
  EXPECT_THROW(predict(ready.setting), Error);
}

// Two groups of two, worker 1 takes 3.5 as long as the others, everybody meets at every fifth step.
TEST(Rows, WagmaDoesNotWaitForALateWorkerUntilTheSync) {
  Ready ready({.algorithm = "wagma",
               .schedule = "fixed-groups",
               .workers = 4,
               .per_node = 4,
               .steps = 100,
               .group_size = 2});
  ready.setting.sync_period = 5;
  ready.setting.times = [](Rank worker, Step) {
    return StepTime{.backward = worker.value == 1 ? 3.5 : 1.0};
  };
  const auto ends = worker_ends(ready.setting);
  for (std::size_t t = 0; t < 4; ++t) {
    EXPECT_NEAR(ends[t][0], static_cast<double>(t) + 1, 1e-12);
    EXPECT_NEAR(ends[t][1], 3.5 * (static_cast<double>(t) + 1), 1e-12);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(ends[4][i], 17.5, 1e-12);
    EXPECT_NEAR(ends[9][i], 35, 1e-12);
  }
  const Prediction prediction = predict(ready.setting);
  EXPECT_NEAR(prediction.step, 3.5, 1e-9);
  // In each five steps worker 1 contributes what is 1, 2, 3 steps old (its first update comes at
  // 3.5, between the third and the fourth version), again 3, and its own.
  ASSERT_EQ(prediction.ages.size(), 4u);
  const auto all = static_cast<double>(prediction.ages[0] + prediction.ages[1] +
                                       prediction.ages[2] + prediction.ages[3]);
  EXPECT_NEAR(static_cast<double>(prediction.ages[0]) / all, 16.0 / 20, 1e-12);
  EXPECT_NEAR(static_cast<double>(prediction.ages[1]) / all, 1.0 / 20, 1e-12);
  EXPECT_NEAR(static_cast<double>(prediction.ages[2]) / all, 1.0 / 20, 1e-12);
  EXPECT_NEAR(static_cast<double>(prediction.ages[3]) / all, 2.0 / 20, 1e-12);
  // Of those to the four rounds that are no sync.
  EXPECT_NEAR(prediction.stale, 4.0 / 16, 1e-12);
}

// A group that is still exchanging version v begins v + 1 when it has ended, whoever has arrived.
TEST(Rows, WagmasVersionsFollowEachOther) {
  // Workers 2 and 3 are on different nodes, and their exchange takes 3; that of 0 and 1 next to
  // nothing.
  Ready ready({.algorithm = "wagma",
               .schedule = "fixed-groups",
               .workers = 4,
               .per_node = 3,
               .costs = {.inside = 0.125, .across = 3},
               .steps = 4,
               .group_size = 2});
  ready.setting.sync_period.reset();
  const auto ends = worker_ends(ready.setting);
  for (std::size_t t = 0; t < 4; ++t) {
    EXPECT_NEAR(ends[t][0], 1.125 * static_cast<double>(t + 1), 1e-12);
    EXPECT_NEAR(ends[t][2], 1 + 3 * static_cast<double>(t + 1), 1e-12);
  }
}

TEST(Rows, GraceTradesTimeForFreshness) {
  Case from{.algorithm = "wagma", .schedule = "groups", .variance = 0.0001, .steps = 1000};
  Ready ready(from);
  const Prediction without = predict(ready.setting);
  ready.setting.grace = 0.02;
  const Prediction some = predict(ready.setting);
  ready.setting.grace = 0.1;
  const Prediction much = predict(ready.setting);
  EXPECT_GT(without.stale, 0.8);
  EXPECT_LT(some.stale, without.stale);
  EXPECT_LT(much.stale, 0.01);
  EXPECT_LT(much.step, 1.05);
}

TEST(Rows, EagerSoloStartsBeforeMajorityBeforeAll) {
  Case from{.variance = 0.02, .costs = all_the_same(0.1), .steps = 2000};
  double last = 0;
  double fresh = -1;
  for (const char* algorithm : {"eager-solo", "eager-majority", "all-reduce"}) {
    from.algorithm = algorithm;
    const Prediction prediction = predict(Ready(from).setting);
    EXPECT_GT(prediction.step, last) << algorithm;
    EXPECT_GT(1 - prediction.stale, fresh) << algorithm;
    last = prediction.step;
    fresh = 1 - prediction.stale;
  }
  // A quorum of everybody is a barrier, one of a single worker is solo.
  from.algorithm = "eager-majority";
  Ready ready(from);
  ready.setting.quorum = 16;
  EXPECT_NEAR(predict(ready.setting).step, last, 1e-9);
  ready.setting.quorum = 1;
  from.algorithm = "eager-solo";
  EXPECT_NEAR(predict(ready.setting).step, step_of(from), 1e-9);
}

TEST(Rows, StarlingWaitsForAStragglerOnlyAtTheAgeBound) {
  // Worker 0 stops for 6 in step 3, once.
  const auto spike = [](Rank worker, Step step) {
    return StepTime{.backward = worker.value == 0 && step.value == 3 ? 7.0 : 1.0};
  };
  Ready ready({.algorithm = "starling",
               .schedule = "complete",
               .workers = 4,
               .per_node = 4,
               .costs = all_the_same(0.1),
               .steps = 40});
  ready.setting.times = spike;
  const auto ends = worker_ends(ready.setting);
  // Within the bound the others lose less than an exchange for each step that they start early.
  EXPECT_LT(ends[39][1], 40.0 + 1.5);
  ready.setting.age_bound = 0;
  const auto strict = worker_ends(ready.setting);
  EXPECT_GT(strict[39][1], 40.0 + 4.5);
  // Worker 0 itself has lost six in any case.
  EXPECT_NEAR(ends[39][0], 46, 1.0);
}

TEST(Rows, StarlingStopsWhereTheAgeBoundSays) {
  // Worker 0 has handed over three updates, and then none for long: versions up to 3 + A can start,
  // and the others can take steps up to that one.
  for (const std::int64_t bound : {1, 4}) {
    Ready ready({.algorithm = "starling",
                 .schedule = "complete",
                 .workers = 4,
                 .per_node = 4,
                 .costs = all_the_same(0.1),
                 .steps = 20});
    ready.setting.age_bound = bound;
    ready.setting.times = [](Rank worker, Step step) {
      return StepTime{.backward = worker.value == 0 && step.value == 3 ? 100.0 : 1.0};
    };
    const auto ends = worker_ends(ready.setting);
    const auto last = static_cast<std::size_t>(3 + bound);
    EXPECT_LT(ends[last][1], 20) << bound;
    EXPECT_GT(ends[last + 1][1], 100) << bound;
  }
}

TEST(Rows, StarlingsContributionsAreNeverOlderThanTheBound) {
  for (const std::int64_t bound : {0, 2, 5}) {
    Ready ready({.algorithm = "starling",
                 .schedule = "groups",
                 .variance = 0.2,
                 .costs = all_the_same(0.2),
                 .steps = 2000});
    ready.setting.age_bound = bound;
    const Prediction prediction = predict(ready.setting);
    EXPECT_LE(prediction.ages.size(), static_cast<std::size_t>(bound) + 1);
    if (bound > 0) {
      EXPECT_GT(prediction.stale, 0);
    }
  }
}

TEST(Rows, StarlingHidesTheExchangeAsDecentralizedAdamDoes) {
  for (const double c : {0.2, 0.6, 0.9}) {
    const Case from{.algorithm = "starling",
                    .schedule = "groups",
                    .update = 0.05,
                    .costs = all_the_same(c),
                    .steps = 400};
    EXPECT_NEAR(step_of(from), 1.05, 1e-9) << c;
  }
  Ready ready({.algorithm = "starling",
               .schedule = "groups",
               .update = 0.05,
               .costs = all_the_same(0.6),
               .steps = 400});
  ready.setting.overlap = false;
  EXPECT_NEAR(predict(ready.setting).step, 1.65, 1e-9);
  ready.setting.overlap = true;
  ready.setting.trigger = topology::Trigger::AllArrived;
  EXPECT_NEAR(predict(ready.setting).step, 1.05, 1e-9);
}

TEST(Rows, AdPsgdNeverWaitsButItsEnginesMustKeepUp) {
  Case from{.algorithm = "ad-psgd",
            .schedule = "pairs",
            .variance = 0.05,
            .update = 0.1,
            .costs = all_the_same(0.3),
            .steps = 2000};
  const Prediction prediction = predict(Ready(from).setting);
  EXPECT_EQ(prediction.waiting.straggler, 0);
  EXPECT_EQ(prediction.waiting.exchange, 0);
  EXPECT_NEAR(prediction.step, 1.1, 0.02);
  EXPECT_GT(prediction.stale, 0);
  from.costs = all_the_same(3);
  EXPECT_GE(step_of(from), 3 - 0.01);
}

TEST(Rows, DecentralizedAdamWithoutOverlapExchangesInsideTheStep) {
  Ready ready({.buckets = 2, .update = 0.1, .costs = all_the_same(0.4), .steps = 200});
  ready.setting.overlap = false;
  // The first bucket's exchange runs behind the second's backward pass: only the last is seen.
  EXPECT_NEAR(predict(ready.setting).step, 1.1 + 0.2, 1e-9);
  ready.setting.streamed = false;
  EXPECT_NEAR(predict(ready.setting).step, 1.1 + 0.4, 1e-9);
  ready.setting.overlap = true;
  EXPECT_NEAR(predict(ready.setting).step, 1.1, 1e-9);
}

TEST(Rows, AllReduceThatDoesNotStreamPaysTheWholeExchange) {
  Ready ready({.algorithm = "all-reduce",
               .buckets = 4,
               .update = 0.1,
               .costs = all_the_same(0.4),
               .steps = 50});
  EXPECT_NEAR(predict(ready.setting).step, 1.1 + 0.1, 1e-9);
  ready.setting.streamed = false;
  EXPECT_NEAR(predict(ready.setting).step, 1.1 + 0.4, 1e-9);
}

TEST(Rows, EnginesPerGroupOverlapExchangesOfDifferentGroups) {
  // Phases across nodes take longer than a step; those inside could slip in between.
  Ready ready({.schedule = "exponential",
               .variance = 0.01,
               .buckets = 4,
               .update = 0.02,
               .costs = {.inside = 0.4, .across = 2.0},
               .steps = 2000});
  const double one = predict(ready.setting).step;
  ready.setting.engines = Engines::OnePerGroup;
  const double many = predict(ready.setting).step;
  EXPECT_LT(many, one - 0.05);
  EXPECT_GE(many, 1.0);
}

TEST(Rows, DelaysCountAsStragglers) {
  Ready ready({.algorithm = "all-reduce", .workers = 8, .steps = 200});
  ready.setting.times = times_of(ComputeTimes("constant:0.5", 1), Delay("1x0.25", 8, 3));
  const Prediction prediction = predict(ready.setting);
  EXPECT_NEAR(prediction.step, 0.75, 1e-9);
  EXPECT_NEAR(prediction.waiting.straggler, 0.25 * 7 / 8, 1e-9);
}

TEST(Rows, WhatDoesNotFitIsRefused) {
  const auto refused = [](const char* algorithm, const char* schedule, auto change) {
    Ready ready({.algorithm = algorithm, .schedule = schedule});
    change(ready.setting);
    EXPECT_THROW(predict(ready.setting), Error) << algorithm;
  };
  refused("dadam", "aer", [](Setting& s) { s.workers = 0; });
  refused("dadam", "aer", [](Setting& s) { s.costs = nullptr; });
  refused("dadam", "aer", [](Setting& s) { s.updates = {1, 2}; });
  refused("dadam", "aer", [](Setting& s) { s.shares = {0.5}; });
  refused("dadam", "aer", [](Setting& s) { s.order = Order::After; });
  refused("dadam", "aer", [](Setting& s) { s.trigger = topology::Trigger::WhenNeeded; });
  refused("wagma", "groups", [](Setting& s) { s.sync_period = 0; });
  refused("wagma", "groups", [](Setting& s) { s.grace = -1; });
  refused("starling", "aer", [](Setting& s) { s.trigger = topology::Trigger::FirstArrived; });
  refused("starling", "aer", [](Setting& s) { s.age_bound = -1; });
}

TEST(Rows, TheSameSeedTheSamePrediction) {
  for (const topology::Algorithm& row : topology::algorithms()) {
    const Case from{.algorithm = std::string(row.name),
                    .schedule = std::string(row.schedules[0]),
                    .variance = 0.02,
                    .costs = {0.1, 0.3, 0.4},
                    .steps = 100};
    EXPECT_EQ(step_of(from), step_of(from)) << row.name;
  }
}

}  // namespace
}  // namespace starling::model
