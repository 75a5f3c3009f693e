#include "starling/model/what_if_costs.h"

#include <algorithm>

#include "starling/model/profile_costs.h"
#include "starling/model/rounds_of_steps.h"

namespace starling::model {
namespace {

Pattern everybody() { return {.schedule = "complete"}; }

// Of the whole model, all exchanges of so many steps.
double sum_of(const ExchangeCosts& costs, const topology::Schedule& schedule, std::uint32_t workers,
              std::int64_t steps) {
  Setting setting;
  setting.schedule = &schedule;
  setting.workers = workers;
  setting.costs = &costs;
  RoundsOfSteps rounds(setting);
  double sum = 0;
  for (std::int64_t t = 0; t < steps; ++t) {
    const Round& round = rounds.at(t);
    for (std::size_t i = 0; i < round.exchanges().size(); ++i) {
      sum += round.seconds_of_all(i);
    }
  }
  return sum;
}

}  // namespace

Links links_of(const Profile& profile) {
  return {.latency = profile.network.latency,
          .bandwidth = profile.network.bandwidth,
          .local_latency = profile.local.latency,
          .local_bandwidth = profile.local.bandwidth,
          .per_node = profile.per_node};
}

LinkCosts link_costs(const Links& links, const std::vector<std::size_t>& buckets) {
  std::vector<Bytes> sizes;
  for (const std::size_t bytes : buckets) {
    sizes.push_back(Bytes{bytes});
  }
  return {links, sizes, Volume::Nodes};
}

double slow_down(const Profile& profile, const Pattern& pattern) {
  const bool known = std::any_of(profile.exchanges.begin(), profile.exchanges.end(),
                                 [&](const ExchangePhase& of) { return of.pattern == pattern; });
  const Pattern like = known ? pattern : everybody();
  const auto schedule = topology::make_schedule(like.schedule, {.workers = profile.workers,
                                                                .per_node = profile.per_node,
                                                                .group_size = like.group_size,
                                                                .peers = like.peers});
  const std::int64_t phases = measured_phases(like, profile.workers, profile.per_node);
  const auto sum = [&](const ExchangeCosts& costs) {
    return sum_of(costs, *schedule, profile.workers, phases);
  };
  return sum(ProfileCosts(profile, like, {profile.bytes})) /
         sum(link_costs(links_of(profile), {profile.bytes}));
}

WhatIfCosts::WhatIfCosts(const Profile& profile, const Pattern& pattern, std::uint32_t workers,
                         const Links& links, const std::vector<std::size_t>& buckets)
    : workers_(workers),
      links_(link_costs(links, buckets)),
      slow_down_(slow_down(profile, pattern)),
      slow_down_of_all_(slow_down(profile, everybody())) {}

void WhatIfCosts::seconds(std::size_t bucket, Step step, std::span<const Exchange> active,
                          std::span<double> out) const {
  links_.seconds(bucket, step, active, out);
  for (std::size_t i = 0; i < active.size(); ++i) {
    const bool all = active[i].closed && active[i].members.size() == workers_;
    out[i] *= all ? slow_down_of_all_ : slow_down_;
  }
}

}  // namespace starling::model
