// A setting with all it refers to, for tests: written down in a line or two.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "starling/model/predict.h"
#include "starling/model/table_costs.h"

namespace starling::model {

// Seconds of exchanges: inside a node, across, of everybody; of the whole model.
struct Costs {
  double inside = 0;
  double across = 0;
  double everybody = 0;
};
inline Costs all_the_same(double c) { return {.inside = c, .across = c, .everybody = c}; }

struct Case {
  std::string algorithm = "dadam";
  std::string schedule = "complete";
  std::uint32_t workers = 16;
  std::uint32_t per_node = 4;
  double mean = 1;
  double variance = 0;
  double forward = ComputeTimes::kForward;
  std::size_t buckets = 1;
  double update = 0;  // of all buckets
  Costs costs{};
  std::uint64_t steps = 1000;
  std::uint64_t seed = 7;
  std::uint32_t group_size = 4;
};

// Keeps what a Setting points to.
class Ready {
 public:
  explicit Ready(const Case& from)
      : schedule_(topology::make_schedule(from.schedule, {.workers = from.workers,
                                                          .per_node = from.per_node,
                                                          .group_size = from.group_size,
                                                          .seed = from.seed})),
        costs_(std::make_unique<TableCosts>(
            from.workers, from.per_node,
            std::vector<PhaseCosts>{{.inside = cut(from.costs.inside, from.buckets),
                                     .across = cut(from.costs.across, from.buckets)}},
            cut(from.costs.everybody, from.buckets))) {
    setting.algorithm = &topology::find_algorithm(from.algorithm);
    setting.schedule = schedule_.get();
    setting.workers = from.workers;
    setting.costs = costs_.get();
    const std::string text = from.variance == 0
                                 ? fmt::format("constant:{}", from.mean)
                                 : fmt::format("normal:{},{}", from.mean, from.variance);
    setting.times = times_of(ComputeTimes(text, from.seed, from.forward));
    setting.buckets = from.buckets;
    setting.updates = cut(from.update, from.buckets);
    setting.steps = from.steps;
    setting.seed = from.seed;
    if (setting.algorithm->cadence != topology::Cadence::EveryStep) {
      setting.sync_period = 10;
    }
  }

  Setting setting;

 private:
  static BucketSeconds cut(double whole, std::size_t buckets) {
    return BucketSeconds(buckets, whole / static_cast<double>(buckets));
  }

  std::unique_ptr<topology::Schedule> schedule_;
  std::unique_ptr<TableCosts> costs_;
};

inline double step_of(const Case& from) { return predict(Ready(from).setting).step; }

// When the last task but exchanges of each worker's step ends: [step][worker].
inline std::vector<std::vector<double>> worker_ends(Setting setting) {
  std::vector<std::vector<double>> ends(setting.steps, std::vector<double>(setting.workers, 0));
  setting.record = [&](const TaskTime& task) {
    if (task.kind != TaskKind::Exchange) {
      double& end = ends[static_cast<std::size_t>(task.step.value)][task.worker.index()];
      end = std::max(end, task.end);
    }
  };
  predict(setting);
  return ends;
}

// Times by hand: table[step][worker], of which `forward` is the forward pass; after the last row
// `rest`.
inline Times times_by_hand(std::vector<std::vector<double>> table, double forward,
                           double rest = 1) {
  return [table = std::move(table), forward, rest](Rank worker, Step step) {
    const auto t = static_cast<std::size_t>(step.value);
    const double whole = t < table.size() ? table[t][worker.index()] : rest;
    return StepTime{.forward = forward * whole, .backward = (1 - forward) * whole};
  };
}

}  // namespace starling::model
