#include "starling/sim/training.h"

#include <algorithm>

#include "starling/base/error.h"
#include "starling/sim/cluster.h"
#include "starling/sim/learner.h"
#include "starling/sim/training_record.h"

namespace starling::sim {
namespace {

// Rounds name their parts by 8 bits, of which they need two values themselves.
constexpr std::size_t kMostBuckets = 254;

comm::PlanOptions plan_options(const TrainingOptions& options) {
  comm::PlanOptions plan = options.plan;
  const PortOptions& ports = options.network.ports;
  plan.workers = static_cast<std::uint32_t>(ports.workers);
  // As in training: nodes count only if all have as many workers.
  plan.per_node =
      ports.workers % ports.per_node == 0 ? static_cast<std::uint32_t>(ports.per_node) : 1;
  return plan;
}

void require_sense(const TrainingOptions& options) {
  const PortOptions& ports = options.network.ports;
  require(ports.workers >= 1, "0 workers");
  require(ports.per_node >= 1 && ports.per_node <= ports.workers, "{} workers on a node, of {}",
          ports.per_node, ports.workers);
  require(options.plan.steps.has_value(), "it was not said how many steps");
  require(options.bytes.value >= sizeof(float) && options.bytes.value % sizeof(float) == 0,
          "a model of {} bytes is not a whole number of floats", options.bytes.value);
  const std::size_t elements = options.bytes.value / sizeof(float);
  require(options.buckets >= 1, "0 buckets");
  require(options.buckets <= std::min(elements, kMostBuckets),
          "{} buckets are too many: the model has {} numbers, and there are at most {}",
          options.buckets, elements, kMostBuckets);
  require(options.update >= 0, "an update of {} seconds", options.update);
  const double least =
      (options.compute.mean() + options.update) * static_cast<double>(*options.plan.steps);
  require(least <= kMostVirtualSeconds,
          "{} steps of about {} s: more virtual time than the {} s that there are",
          *options.plan.steps, options.compute.mean(), kMostVirtualSeconds);
}

// Where equal parts of so many floats end, in bytes.
std::vector<std::size_t> equal_parts(std::size_t elements, std::size_t count) {
  std::vector<std::size_t> ends;
  for (std::size_t k = 1; k <= count; ++k) {
    ends.push_back(elements * k / count * sizeof(float));
  }
  return ends;
}

Task<void> learn(comm::Engine& engine, const TrainingOptions& options,
                 const comm::StepOptions& steps, TrainingRecord& record) {
  Learner learner(engine, options, steps, record);
  co_await comm::take_steps(engine, learner, learner.steps());
}

double busiest_card(const Network& network) {
  std::uint64_t most = 0;
  for (std::uint32_t n = 0; n < network.ports().nodes(); ++n) {
    const Ports::Carried carried = network.ports().carried(Node{n});
    most = std::max({most, carried.out, carried.in});
  }
  return static_cast<double>(most);
}

}  // namespace

TrainingResult simulate_training(const TrainingOptions& options) {
  require_sense(options);
  comm::Plan plan = comm::make_plan(plan_options(options));
  plan.steps.shape.elements = options.bytes.value / sizeof(float);
  plan.steps.shape.weightless = true;
  plan.steps.parts = equal_parts(plan.steps.shape.elements, options.buckets);

  ClusterOptions cluster_options;
  cluster_options.network = options.network;
  cluster_options.payload = Payload::Weightless;
  cluster_options.engine.few_messages = true;
  // A worker that computes for long has not stalled.
  cluster_options.engine.max_stall =
      std::chrono::duration_cast<Duration>(Seconds(kMostVirtualSeconds));
  Cluster cluster(cluster_options);
  TrainingRecord record(options, plan.steps);
  const auto progress = [&](const Network& network) {
    const double now = seconds(network.now().time_since_epoch());
    require(now <= kMostVirtualSeconds, "more than {} s of virtual time", kMostVirtualSeconds);
    if (options.progress) {
      options.progress({.done = record.done(), .virtual_seconds = now, .events = network.events()});
    }
  };
  // How workers part from each other afterwards is not asked for.
  const std::vector<std::exception_ptr> ends =
      cluster.run([&](comm::Engine& engine) { return learn(engine, options, plan.steps, record); },
                  progress, [&] { return record.all_done(); });
  if (!record.all_done()) {
    rethrow_first(ends);
  }

  const Network& network = cluster.network();
  TrainingResult result;
  record.fill(result);
  result.card_bytes_per_step = busiest_card(network) / static_cast<double>(plan.steps.steps);
  result.messages = network.messages();
  result.events = network.events();
  result.trace = network.trace_hash();
  return result;
}

}  // namespace starling::sim
