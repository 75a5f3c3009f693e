// The case of docs/simulation.md by the runtime model: 1,024 workers that collect experience for
// navigation, 200 steps. Tells apart what SGP waits for: those that send to a worker, or those it
// sends to as well.
#include <fmt/format.h>

#include "starling/base/compute_times.h"
#include "starling/model/link_costs.h"
#include "starling/model/predict.h"
#include "starling/topology/schedule.h"

namespace starling::model {
namespace {

constexpr std::uint32_t kWorkers = 1024;

struct Case {
  const char* algorithm;
  topology::ScheduleOptions schedule;
  std::optional<std::uint32_t> sync_period = std::nullopt;
  bool push_waits = true;
  const char* note = "";
};

double step_of(const Case& from) {
  const topology::Algorithm& row = topology::find_algorithm(from.algorithm);
  const auto schedule = topology::make_schedule(row.schedules[0], from.schedule);
  const LinkCosts costs({.latency = 5e-6, .bandwidth = 10e9}, {Bytes{33905684}});
  Setting setting;
  setting.algorithm = &row;
  setting.schedule = schedule.get();
  setting.workers = kWorkers;
  setting.times = times_of(ComputeTimes("draw:navigation:2.10", 1));
  setting.costs = &costs;
  setting.sync_period = from.sync_period;
  setting.push_waits = from.push_waits;
  setting.steps = 200;
  return predict(setting).step;
}

void run() {
  const topology::ScheduleOptions groups{.workers = kWorkers, .group_size = 32};
  const topology::ScheduleOptions pushes{.workers = kWorkers, .peers = 4};
  const Case cases[] = {
      {.algorithm = "wagma", .schedule = groups, .sync_period = 8},
      {.algorithm = "starling", .schedule = groups},
      {.algorithm = "local-sgd", .schedule = {.workers = kWorkers}, .sync_period = 1},
      {.algorithm = "sgp", .schedule = pushes, .note = "waits for both sides, as in comm/"},
      {.algorithm = "sgp", .schedule = pushes, .push_waits = false, .note = "for senders only"}};
  const double wagma = step_of(cases[0]);
  for (const Case& each : cases) {
    const double step = step_of(each);
    fmt::print("{:<10} {:>6.2f} s a step   WAGMA is {:.2f} times as fast   {}\n", each.algorithm,
               step, step / wagma, each.note);
  }
}

}  // namespace
}  // namespace starling::model

int main() { starling::model::run(); }
