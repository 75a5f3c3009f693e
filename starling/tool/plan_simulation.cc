#include "starling/tool/plan_simulation.h"

#include "starling/sim/training.h"

namespace starling::tool {
namespace {

// How much of their speed links have under the exchanges of this choice, all at once: less than for
// one pair alone, because flows get in each other's way. It is what makes steps without
// computation, by the speed of links, as long as they are by the exchanges that were measured.
double served_share(const model::Profile& profile, const model::Choice& choice) {
  model::Profile idle = profile;
  idle.updates = {};
  for (auto& worker : idle.compute) {
    worker.assign(1, ComputeTime{});
  }
  const auto step = [&](const model::Question& question) {
    return model::predict_choice(idle, question, choice.candidate, choice.bucket_bytes)
        .prediction.step;
  };
  return step({.steps = 100, .by_links = true}) / step({.steps = 100});
}

}  // namespace

double simulate_choice(const model::Profile& profile, const model::Choice& choice,
                       std::uint64_t steps, std::uint64_t seed) {
  const model::Candidate& candidate = choice.candidate;
  sim::TrainingOptions options;
  options.plan.algorithm = candidate.algorithm->name;
  options.plan.schedule = candidate.pattern.schedule;
  options.plan.group_size = candidate.pattern.group_size;
  options.plan.peers = candidate.pattern.peers;
  options.plan.sync_period = candidate.sync_period;
  options.plan.steps = steps;
  options.plan.seed = seed;
  options.network.ports.workers = profile.workers;
  options.network.ports.per_node = profile.per_node;
  options.network.ports.latency = profile.network.latency;
  const double share = served_share(profile, choice);
  const bool one_node = profile.per_node >= profile.workers;
  options.network.ports.bandwidth = share * profile.network.bandwidth;
  options.network.ports.local_latency = profile.local.latency;
  options.network.ports.local_bandwidth = (one_node ? share : 1) * profile.local.bandwidth;
  options.network.seed = seed;
  options.bytes = Bytes{profile.bytes};
  options.buckets = choice.buckets;
  options.compute = ComputeTimes(profile.compute, seed);
  options.update = update_seconds(profile, *candidate.algorithm);
  return sim::simulate_training(options).step_seconds;
}

}  // namespace starling::tool
