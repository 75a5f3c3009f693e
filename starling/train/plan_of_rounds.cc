#include "starling/train/plan_of_rounds.h"

#include <map>

#include "starling/train/data_parallel.h"

namespace starling::train {

std::uint32_t workers_per_node(const comm::Workers& workers) {
  std::map<std::uint32_t, std::uint32_t> counts;
  for (const Rank rank : workers.everyone()) {
    ++counts[workers.node_of(rank).value];
  }
  const std::uint32_t count = counts.begin()->second;
  for (const Rank rank : workers.everyone()) {
    const std::uint32_t first = rank.value / count * count;
    if (counts[workers.node_of(rank).value] != count ||
        workers.node_of(rank) != workers.node_of(Rank{first})) {
      return 1;
    }
  }
  return count;
}

PlanOfRounds plan_rounds(const comm::Workers& workers, const Options& options) {
  if (options.algorithm == "alone") {
    return {};
  }
  comm::Plan plan = comm::make_plan({.workers = static_cast<std::uint32_t>(workers.size()),
                                     .per_node = workers_per_node(workers),
                                     .algorithm = options.algorithm,
                                     .schedule = options.schedule,
                                     .group_size = options.group_size,
                                     .peers = options.peers,
                                     .sync_period = options.sync_period,
                                     .averaging = options.averaging,
                                     .trigger = options.trigger,
                                     .age_bound = options.age_bound,
                                     .overlap = options.overlap,
                                     .gradient_at_mixed = options.gradient_at_mixed,
                                     .bf16 = options.bf16,
                                     .steps = options.steps,
                                     .seed = options.seed});
  return {.algorithm = plan.steps.algorithm,
          .schedule_name = std::move(plan.schedule_name),
          .schedule = std::move(plan.schedule),
          .steps = std::move(plan.steps)};
}

}  // namespace starling::train
