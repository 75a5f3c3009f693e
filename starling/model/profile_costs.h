// What exchanges cost by a profile: each step of the schedule was measured with all its groups at
// it at once, at several sizes; other sizes lie on the straight lines between them.
#pragma once

#include <cstddef>
#include <vector>

#include "starling/model/exchange_costs.h"
#include "starling/model/profile.h"

namespace starling::model {

class ProfileCosts final : public ExchangeCosts {
 public:
  // `profile` outlives this. `buckets`: bytes of each. Throws Error{Input} if the profile does not
  // know the pattern.
  ProfileCosts(const Profile& profile, const Pattern& pattern, std::vector<std::size_t> buckets);

  void seconds(std::size_t bucket, Step step, std::span<const Exchange> active,
               std::span<double> out) const override;

 private:
  using Phases = std::vector<const ExchangePhase*>;
  static Phases find(const Profile& profile, const Pattern& pattern);

  std::uint32_t workers_;
  std::vector<std::size_t> buckets_;
  Phases phases_;
  Phases everybody_;
};

// Of one worker, with `bytes` bytes.
double seconds_of(const ExchangePhase& phase, Rank worker, std::size_t bytes);

}  // namespace starling::model
