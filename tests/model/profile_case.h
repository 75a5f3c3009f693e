// A profile of a model that was never trained, for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "starling/base/time.h"
#include "starling/model/profile.h"
#include "starling/topology/schedule.h"

namespace starling::model {

// 8 workers on 4 nodes that compute 100 ms; an exchange of everybody takes `whole` seconds for the
// whole model, any other a part of it.
inline Profile make_profile(double whole, double variation = 0) {
  Profile profile;
  profile.workers = 8;
  profile.per_node = 2;
  profile.launcher = "none";
  profile.transport = "ucx";
  profile.model = "flat:1000000";
  profile.parameters = 1'000'000;
  profile.bytes = 4'000'000;
  profile.compute.resize(8);
  for (std::size_t r = 0; r < 8; ++r) {
    for (int i = 0; i < 40; ++i) {
      const double factor = 1 + variation * ((static_cast<int>(r) * 7 + i * 13) % 41 - 20) / 12.0;
      profile.compute[r].push_back({std::chrono::round<Duration>(Seconds(0.033 * factor)),
                                    std::chrono::round<Duration>(Seconds(0.067 * factor))});
    }
  }
  profile.ends = {1'000'000, 2'000'000, 3'000'000, 4'000'000};
  profile.shares = {0.25, 0.25, 0.25, 0.25};
  profile.updates = {.gradients = 0.001, .parameters = 0.001, .behind = 0.002, .held = 0.002};
  profile.network = {.latency = 1e-4, .bandwidth = 125e6};
  profile.local = {.latency = 1e-5, .bandwidth = 5e9};
  const auto everybody = topology::View::full(8);
  for (const Pattern& pattern : patterns(candidates(8, 2))) {
    const auto schedule = topology::make_schedule(
        pattern.schedule,
        {.workers = 8, .per_node = 2, .group_size = pattern.group_size, .peers = pattern.peers});
    for (std::int64_t p = 0; p < schedule->period(everybody).value_or(1); ++p) {
      ExchangePhase phase{.pattern = pattern, .phase = p, .samples = {}};
      for (const std::size_t bytes : {250'000, 1'000'000, 4'000'000}) {
        const double part = pattern.schedule == "complete" ? 1 : 0.4;
        phase.samples.push_back(
            {bytes, std::vector<double>(8, part * whole * static_cast<double>(bytes) / 4e6)});
      }
      profile.exchanges.push_back(std::move(phase));
    }
  }
  return profile;
}

}  // namespace starling::model
