// The recurrences against the protocols themselves, in virtual time: the same stragglers, the same
// end of the run. On a network that costs next to nothing every row agrees; on one that does cost,
// as far as costs from the speed of links are right.
#include <gtest/gtest.h>

#include <algorithm>

#include "starling/model/link_costs.h"
#include "starling/sim/stragglers.h"
#include "tests/model/case.h"

namespace starling::model {
namespace {

constexpr std::uint32_t kWorkers = 16;

// Until the last worker has ended its last step.
double predicted(const topology::Algorithm& row, const sim::StragglerOptions& options,
                 const ExchangeCosts* costs = nullptr) {
  Case from{.algorithm = std::string(row.name),
            .schedule = std::string(row.schedules[0]),
            .per_node = 1,
            .steps = options.steps};
  from.group_size = topology::default_group_size(kWorkers);
  from.seed = 0;
  Ready ready(from);
  ready.setting.streamed = false;
  if (costs != nullptr) {
    ready.setting.costs = costs;
  }
  if (row.cadence == topology::Cadence::EveryPeriod) {
    ready.setting.sync_period = 1;
  }
  ready.setting.times = [&](Rank worker, Step step) {
    const bool late = sim::straggles(options, kWorkers, worker, step);
    return StepTime{.backward = options.step + (late ? options.delay : 0)};
  };
  double last = 0;
  ready.setting.record = [&](const TaskTime& task) { last = std::max(last, task.end); };
  predict(ready.setting);
  return last;
}

sim::StragglerOptions options_of(const topology::Algorithm& row, Bytes bytes,
                                 std::uint32_t stragglers) {
  return {.algorithm = std::string(row.name),
          .bytes = bytes,
          .steps = 60,
          .step = 0.6,
          .stragglers = stragglers,
          .delay = 0.32,
          .sync_period = 10,
          .seed = 4,
          .weightless = true};
}

TEST(VirtualNetwork, RunsEndWhenTheRecurrencesSay) {
  for (const topology::Algorithm& row : topology::algorithms()) {
    for (const std::uint32_t stragglers : {1, 3}) {
      const sim::StragglerOptions options = options_of(row, Bytes{4096}, stragglers);
      const double simulated = sim::simulate_stragglers({.workers = kWorkers}, options);
      // Messages take microseconds, steps a second.
      EXPECT_NEAR(predicted(row, options), simulated, 0.0003 * simulated)
          << row.name << ", " << stragglers << " late";
    }
  }
}

// Predicted over simulated.
double ratio(const topology::Algorithm& row, Bytes bytes, std::uint32_t per_node) {
  const sim::PortOptions ports{.workers = kWorkers, .per_node = per_node};
  const sim::StragglerOptions options = options_of(row, bytes, 2);
  const LinkCosts costs({.latency = ports.latency,
                         .bandwidth = ports.bandwidth,
                         .local_latency = ports.local_latency,
                         .local_bandwidth = ports.local_bandwidth,
                         .per_node = per_node},
                        {bytes}, per_node == 1 ? Volume::Direct : Volume::Nodes);
  return predicted(row, options, &costs) / sim::simulate_stragglers(ports, options);
}

TEST(VirtualNetwork, CostsOfLinksAreThoseOfTheProtocols) {
  for (const topology::Algorithm& row : topology::algorithms()) {
    // Where edges are transfers of their own, they need not wait for each other.
    const double tolerance = row.name == "sgp" ? 0.025 : 0.005;
    for (const std::uint64_t bytes : {500'000'000, 2'000'000'000}) {
      EXPECT_NEAR(ratio(row, Bytes{bytes}, 1), 1, tolerance) << row.name << ", " << bytes;
    }
  }
}

// Groups that share a card are taken to use it at the same time; late ones do not, so that the
// model errs on the slow side, but for parts of a percent.
TEST(VirtualNetwork, SharedCardsAreNotTakenTooLightly) {
  for (const topology::Algorithm& row : topology::algorithms()) {
    for (const std::uint64_t bytes : {500'000'000, 2'000'000'000}) {
      const double over = ratio(row, Bytes{bytes}, 4);
      EXPECT_GT(over, 0.99) << row.name << ", " << bytes;
      EXPECT_LT(over, bytes > 1'000'000'000 ? 1.35 : 1.12) << row.name << ", " << bytes;
    }
  }
}

}  // namespace
}  // namespace starling::model
