// What exchanges would cost among other workers, or on other links: by the speed of links, times
// how much longer than that exchanges of the same pattern took when they were measured. Links are
// measured with one pair alone; in training all groups exchange at once, and get in each other's
// way.
#pragma once

#include <cstdint>
#include <vector>

#include "starling/model/exchange_costs.h"
#include "starling/model/link_costs.h"
#include "starling/model/profile.h"

namespace starling::model {

// As the profile has them.
Links links_of(const Profile& profile);

// Measured over by the speed of links: all phases, the whole model, on the profile's own workers.
// Of a pattern that was not measured: that of everybody.
double slow_down(const Profile& profile, const Pattern& pattern);

class WhatIfCosts final : public ExchangeCosts {
 public:
  // `buckets`: bytes of each. An exchange of all `workers` is slowed down like everybody's.
  WhatIfCosts(const Profile& profile, const Pattern& pattern, std::uint32_t workers,
              const Links& links, const std::vector<std::size_t>& buckets);

  void seconds(std::size_t bucket, Step step, std::span<const Exchange> active,
               std::span<double> out) const override;

 private:
  std::uint32_t workers_;
  LinkCosts links_;
  double slow_down_;
  double slow_down_of_all_;
};

// As the engine sends.
LinkCosts link_costs(const Links& links, const std::vector<std::size_t>& buckets);

}  // namespace starling::model
