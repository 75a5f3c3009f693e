// Traces worked out by hand, to the digit: the ends of updates and exchanges of decentralized Adam,
// and what a spike and a straggler do.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/model/case.h"

namespace starling::model {
namespace {

using Key = std::tuple<TaskKind, std::int64_t, std::size_t, std::uint32_t>;

// The ends of all tasks, by kind, step, bucket and worker.
std::map<Key, double> ends_of(Setting& setting) {
  std::map<Key, double> ends;
  setting.record = [&](const TaskTime& task) {
    ends[{task.kind, task.step.value, task.bucket, task.worker.value}] = task.end;
  };
  predict(setting);
  return ends;
}

TEST(Golden, FourWorkersTwoBucketsOnePeerExponential) {
  Ready ready({.schedule = "exponential",
               .workers = 4,
               .per_node = 2,
               .buckets = 2,
               .update = 0.1,
               .costs = {.inside = 0.2, .across = 0.8, .everybody = 0.8},
               .steps = 3});
  ready.setting.times = times_by_hand({{1, 1.2, .8, 1}, {1, 1, 1.6, .8}, {1.2, .8, 1, 1}}, 0.25);
  const auto ends = ends_of(ready.setting);
  using Rows = std::vector<std::vector<double>>;
  const Rows update[] = {
      {{.675, .8, .55, .675}, {1.775, 1.975, 1.95, 1.65}, {3, 2.95, 3.275, 2.675}},
      {{1.1, 1.3, .9, 1.1}, {2.2, 2.4, 2.6, 2.0}, {3.5, 3.3, 3.7, 3.1}}};
  const Rows exchange[] = {
      {{1.075, 1.2, 1.075, 1.2}, {2.075, 2.075, 2.05, 2.05}, {3.675, 3.35, 3.675, 3.35}},
      {{1.5, 1.7, 1.5, 1.7}, {2.5, 2.5, 2.7, 2.7}, {4.1, 3.75, 4.1, 3.75}}};
  for (std::size_t k = 0; k < 2; ++k) {
    for (std::int64_t t = 0; t < 3; ++t) {
      for (std::uint32_t i = 0; i < 4; ++i) {
        const auto step = static_cast<std::size_t>(t);
        EXPECT_NEAR(ends.at({TaskKind::Update, t, k, i}), update[k][step][i], 1e-12)
            << "U" << k + 1 << " step " << t << " worker " << i;
        EXPECT_NEAR(ends.at({TaskKind::Exchange, t, k, i}), exchange[k][step][i], 1e-12)
            << "C" << k + 1 << " step " << t << " worker " << i;
      }
    }
  }
}

// One bucket, no costs: when the steps of worker i end.
std::vector<double> step_ends(const Case& from, const std::vector<std::vector<double>>& times,
                              std::uint32_t worker) {
  Ready ready(from);
  ready.setting.times = times_by_hand(times, 1.0 / 3);
  const auto ends = ends_of(ready.setting);
  std::vector<double> list;
  for (std::int64_t t = 0; t < static_cast<std::int64_t>(from.steps); ++t) {
    list.push_back(ends.at({TaskKind::Update, t, 0, worker}));
  }
  return list;
}

// After `t` steps: t steps have ended.
double after(const std::vector<double>& ends, std::size_t t) { return ends[t - 1]; }

TEST(Golden, ASpikeDelaysTheOthersByOneStepLess) {
  const Case complete{.workers = 4, .per_node = 4, .steps = 10};
  // T_0^1 = 3.
  const std::vector<std::vector<double>> spike = {{1, 1, 1, 1}, {3, 1, 1, 1}};
  const std::vector<double> slow = step_ends(complete, spike, 0);
  const std::vector<double> other = step_ends(complete, spike, 2);
  EXPECT_NEAR(after(other, 2), 2, 1e-12);
  for (std::size_t t = 3; t <= 10; ++t) {
    EXPECT_NEAR(after(slow, t), static_cast<double>(t) + 2, 1e-12);
    EXPECT_NEAR(after(other, t), static_cast<double>(t) + 1, 1e-12);
  }
  Case all = complete;
  all.algorithm = "all-reduce";
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::vector<double> ends = step_ends(all, spike, i);
    for (std::size_t t = 2; t <= 10; ++t) {
      EXPECT_NEAR(after(ends, t), static_cast<double>(t) + 2, 1e-12);
    }
  }
}

TEST(Golden, SpikesOfDifferentWorkersOverlap) {
  std::vector<std::vector<double>> spikes(5, {1, 1, 1, 1});
  for (std::size_t t = 1; t <= 4; ++t) {
    spikes[t][t - 1] = 1.9;
  }
  Case from{.workers = 4, .per_node = 4, .steps = 6};
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(after(step_ends(from, spikes, i), 6), 6.9, 1e-12);
  }
  from.algorithm = "all-reduce";
  EXPECT_NEAR(after(step_ends(from, spikes, 0), 6), 9.6, 1e-12);
}

TEST(Golden, APermanentStragglerSetsThePace) {
  for (const char* schedule : {"complete", "ring", "exponential"}) {
    Ready ready({.schedule = schedule, .workers = 4, .per_node = 4, .steps = 400});
    ready.setting.times = [](Rank worker, Step) {
      return StepTime{.backward = worker.value == 0 ? 1.5 : 1};
    };
    EXPECT_NEAR(predict(ready.setting).step, 1.5, 1e-9) << schedule;
  }
}

}  // namespace
}  // namespace starling::model
