// The recurrences against the protocols themselves, in virtual time: the same stragglers, the same
// end of the run. On a network that costs next to nothing every row agrees; on one that does cost,
// as far as costs from the speed of links are right.
#include <gtest/gtest.h>

#include <algorithm>

#include "starling/model/link_costs.h"
#include "starling/sim/stragglers.h"
#include "starling/sim/training.h"
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

// --- Training on 8 workers of 4 nodes ---

// A setting and the same training in virtual time.
Case of_training(const char* algorithm, const char* schedule) {
  return {.algorithm = algorithm,
          .schedule = schedule,
          .workers = 8,
          .per_node = 2,
          .mean = 0.17,
          .variance = 0.0134 * 0.17 * 0.17,
          .buckets = 4,
          .steps = 420,  // whole periods of all schedules and syncs
          .group_size = 2};
}
sim::TrainingOptions training_of(const Case& from, Bytes bytes) {
  const Ready ready(from);
  sim::TrainingOptions options;
  options.plan.algorithm = from.algorithm;
  options.plan.schedule = from.schedule;
  options.plan.group_size =
      from.schedule == "groups" ? std::optional(from.group_size) : std::nullopt;
  options.plan.sync_period = ready.setting.sync_period;
  options.plan.steps = from.steps;
  options.plan.seed = from.seed;
  options.network.ports = {.workers = from.workers, .per_node = from.per_node};
  options.network.ports.bandwidth = 125e6;
  options.bytes = bytes;
  options.buckets = from.buckets;
  options.compute = ComputeTimes(fmt::format("normal:{},{}", from.mean, from.variance), from.seed);
  return options;
}

// What the model says that passes a card is what the engine sends; greetings and other small
// messages come on top, some hundred bytes a step.
TEST(VirtualNetwork, CardsCarryWhatTheModelSays) {
  const Bytes bytes{4'000'000};
  const std::pair<const char*, const char*> rows[] = {
      {"all-reduce", "complete"},   {"dadam", "complete"},     {"dadam", "ring"},
      {"dadam", "exponential"},     {"dadam", "aer"},          {"wagma", "groups"},
      {"starling", "groups"},       {"local-sgd", "complete"}, {"sgp", "push"},
      {"d-psgd", "ring-neighbours"}};
  for (const auto& [algorithm, schedule] : rows) {
    for (const std::uint32_t group_size : {2, 4}) {
      Case from = of_training(algorithm, schedule);
      from.group_size = group_size;
      const double counted = sim::simulate_training(training_of(from, bytes)).card_bytes_per_step;
      const double predicted = 4e6 * models_per_card(Ready(from).setting, from.per_node);
      EXPECT_NEAR(counted / predicted, 1, 0.0005) << algorithm << " on " << schedule;
    }
  }
}

// The same steps, drawn from the same seed.
TEST(VirtualNetwork, TrainingOneStepBehindTakesWhatTheModelSays) {
  for (const char* schedule : {"ring", "exponential", "aer"}) {
    for (const std::uint64_t bytes : {1'000'000, 10'000'000, 15'000'000}) {
      const Case from = of_training("dadam", schedule);
      const sim::TrainingOptions options = training_of(from, Bytes{bytes});
      const sim::PortOptions& ports = options.network.ports;
      const LinkCosts costs({.latency = ports.latency,
                             .bandwidth = ports.bandwidth,
                             .local_latency = ports.local_latency,
                             .local_bandwidth = ports.local_bandwidth,
                             .per_node = from.per_node},
                            std::vector(from.buckets, Bytes{bytes / from.buckets}), Volume::Nodes);
      Ready ready(from);
      ready.setting.costs = &costs;
      const double over =
          predict(ready.setting).step / sim::simulate_training(options).step_seconds;
      EXPECT_GT(over, 0.99) << schedule << ", " << bytes;
      // Exchanges that share a card for about a step are taken to do so at the same time.
      EXPECT_LT(over, bytes > 10'000'000 ? 1.04 : 1.01) << schedule << ", " << bytes;
    }
  }
}

}  // namespace
}  // namespace starling::model
