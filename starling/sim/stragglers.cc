#include "starling/sim/stragglers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "starling/base/random.h"
#include "starling/comm/model_memory.h"
#include "starling/comm/step.h"
#include "starling/sim/cluster.h"
#include "starling/topology/algorithm.h"
#include "starling/topology/schedule.h"

namespace starling::sim {
namespace {

// An application that takes its time, and changes nothing.
class Sleeper final : public comm::Application {
 public:
  Sleeper(comm::Engine& engine, const StragglerOptions& options, const comm::ModelShape& shape,
          const Compute& compute, const Apart& apart)
      : engine_(engine),
        options_(options),
        compute_(compute),
        apart_(apart),
        model_(engine, shape),
        gradient_(engine, shape) {}

  comm::Buffer model() override { return model_.buffer(); }
  comm::Buffer gradient() override { return gradient_.buffer(); }
  Task<void> compute(Step step) override {
    const bool late = straggles(options_, engine_.size(), engine_.rank(), step);
    return compute_(options_.step + (late ? options_.delay : 0));
  }
  void update(Step, comm::Buffer) override {}
  Task<void> apart(std::function<void()> work) override { return apart_(std::move(work)); }

 private:
  comm::Engine& engine_;
  const StragglerOptions& options_;
  const Compute& compute_;
  const Apart& apart_;
  comm::ModelMemory model_;
  comm::ModelMemory gradient_;
};

Task<void> in_virtual_time(comm::Engine& engine, double seconds) {
  co_await engine.sleep_for(std::chrono::duration_cast<Duration>(Seconds(seconds)));
}

}  // namespace

bool straggles(const StragglerOptions& options, std::size_t workers, Rank worker, Step step) {
  RandomSequence draws(Random(options.seed).stream(static_cast<std::uint64_t>(step.value)));
  std::set<std::uint64_t> drawn;
  while (drawn.size() < std::min<std::size_t>(options.stragglers, workers)) {
    drawn.insert(draws.below(workers));
  }
  return drawn.contains(worker.value);
}

Task<void> take_straggling_steps(comm::Engine& engine, StragglerOptions options, Compute compute,
                                 Apart apart) {
  const topology::Algorithm& algorithm = topology::find_algorithm(options.algorithm);
  topology::ScheduleOptions schedule_options;
  schedule_options.workers = static_cast<std::uint32_t>(engine.size());
  const auto schedule = topology::make_schedule(algorithm.schedules[0], schedule_options);
  comm::StepOptions steps;
  steps.algorithm = &algorithm;
  steps.schedule = schedule.get();
  steps.shape.elements = options.bytes.value / sizeof(float);
  steps.shape.weightless = options.weightless;
  steps.steps = options.steps;
  if (algorithm.cadence == topology::Cadence::EveryStepAndSync) {
    steps.sync_period = options.sync_period;
  }
  steps.series = options.run;
  Sleeper sleeper(engine, options, steps.shape, compute, apart);
  co_await comm::take_steps(engine, sleeper, steps);
}

double simulate_stragglers(const PortOptions& ports, StragglerOptions options) {
  ClusterOptions cluster_options;
  cluster_options.network.ports = ports;
  cluster_options.payload = Payload::Weightless;
  options.weightless = true;
  Cluster cluster(cluster_options);
  rethrow_first(cluster.run([&](comm::Engine& engine) {
    return take_straggling_steps(
        engine, options, [&engine](double seconds) { return in_virtual_time(engine, seconds); },
        at_once);
  }));
  return seconds(cluster.network().now().time_since_epoch());
}

}  // namespace starling::sim
