#include "starling/model/profile_costs.h"

#include <algorithm>
#include <utility>

#include "starling/base/error.h"

namespace starling::model {

double seconds_of(const ExchangePhase& phase, Rank worker, std::size_t bytes) {
  const std::vector<ExchangeSample>& samples = phase.samples;
  const auto time = [&](std::size_t i) { return samples[i].seconds[worker.index()]; };
  if (samples.size() == 1) {
    return time(0) * static_cast<double>(bytes) / static_cast<double>(samples[0].bytes);
  }
  // The first sample that is not smaller, and the one before; beyond the ends the outer two.
  std::size_t above = 1;
  while (above + 1 < samples.size() && samples[above].bytes < bytes) {
    ++above;
  }
  const auto low = static_cast<double>(samples[above - 1].bytes);
  const auto high = static_cast<double>(samples[above].bytes);
  const double along = high == low ? 0 : (static_cast<double>(bytes) - low) / (high - low);
  // Noise may have made the larger one faster; nothing is free.
  return std::max(time(above - 1) + along * (time(above) - time(above - 1)),
                  std::min(time(above - 1), time(above)) / 2);
}

ProfileCosts::ProfileCosts(const Profile& profile, const Pattern& pattern,
                           std::vector<std::size_t> buckets)
    : workers_(profile.workers),
      buckets_(std::move(buckets)),
      phases_(find(profile, pattern)),
      everybody_(find(profile, {.schedule = "complete"})) {}

ProfileCosts::Phases ProfileCosts::find(const Profile& profile, const Pattern& pattern) {
  Phases found;
  for (const ExchangePhase& phase : profile.exchanges) {
    if (phase.pattern == pattern) {
      found.push_back(&phase);
    }
  }
  require(!found.empty(), "the profile has no exchanges {}; measure again", name_of(pattern));
  return found;
}

void ProfileCosts::seconds(std::size_t bucket, Step step, std::span<const Exchange> active,
                           std::span<double> out) const {
  const ExchangePhase& phase = *phases_[static_cast<std::size_t>(step.value) % phases_.size()];
  for (std::size_t i = 0; i < active.size(); ++i) {
    const Exchange& exchange = active[i];
    const bool all = exchange.closed && exchange.members.size() == workers_;
    out[i] = 0;
    // Members end together; an exchange that is not closed is its first's.
    for (const Rank member :
         exchange.members.first(exchange.closed ? exchange.members.size() : 1)) {
      out[i] = std::max(
          out[i], exchange.members.size() == 1
                      ? 0
                      : seconds_of(all ? *everybody_.front() : phase, member, buckets_[bucket]));
    }
  }
}

}  // namespace starling::model
