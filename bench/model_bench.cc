// How long a prediction takes: 1,024 workers, 1,000 steps, every row of the table of algorithms;
// groups of 32, 4 buckets where exchanges start inside the backward pass.
#include <fmt/format.h>

#include <ctime>

#include "starling/base/compute_times.h"
#include "starling/model/predict.h"
#include "starling/model/table_costs.h"
#include "starling/topology/schedule.h"

namespace starling::model {
namespace {

constexpr std::uint32_t kWorkers = 1024;

void run(const topology::Algorithm& row) {
  const auto schedule = topology::make_schedule(
      row.schedules[0], {.workers = kWorkers, .per_node = 8, .group_size = 32});
  const std::size_t buckets =
      row.one_step_behind && row.payload == topology::Payload::Parameters ? 4 : 1;
  const TableCosts costs = equal_costs(kWorkers, 0.3, buckets);
  Setting setting;
  setting.algorithm = &row;
  setting.schedule = schedule.get();
  setting.workers = kWorkers;
  setting.times = times_of(ComputeTimes("normal:1,0.02", 1));
  setting.costs = &costs;
  setting.buckets = buckets;
  if (row.cadence != topology::Cadence::EveryStep) {
    setting.sync_period = 8;
  }
  setting.steps = 1000;
  const std::clock_t before = std::clock();
  const double step = predict(setting).step;
  fmt::print("{:<16} {:>8.2f} s of one core   (a step takes {:.3f})\n", row.name,
             static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, step);
}

}  // namespace
}  // namespace starling::model

int main() {
  for (const auto& row : starling::topology::algorithms()) {
    starling::model::run(row);
  }
}
