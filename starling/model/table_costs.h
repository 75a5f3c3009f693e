// Costs that were measured, or are assumed: seconds per bucket, by phase of the schedule and by
// whether an exchange stays inside a node, leaves it, or is one of everybody.
#pragma once

#include <cstdint>
#include <vector>

#include "starling/model/exchange_costs.h"

namespace starling::model {

// Seconds per bucket.
using BucketSeconds = std::vector<double>;

struct PhaseCosts {
  BucketSeconds inside{};
  BucketSeconds across{};
};

class TableCosts final : public ExchangeCosts {
 public:
  // Step t costs what `phases[t mod phases.size()]` says; an exchange of all `workers` costs
  // `everybody`, whatever the phase. Ranks of a node are consecutive. Throws Error{Input} unless
  // all lists are of the same length, with no negative time, and there is a phase.
  TableCosts(std::uint32_t workers, std::uint32_t per_node, std::vector<PhaseCosts> phases,
             BucketSeconds everybody);

  void seconds(std::size_t bucket, Step step, std::span<const Exchange> active,
               std::span<double> out) const override;

 private:
  std::uint32_t workers_;
  std::uint32_t per_node_;
  std::vector<PhaseCosts> phases_;
  BucketSeconds everybody_;
};

// The same cost for every exchange, `total` seconds cut into equal buckets.
TableCosts equal_costs(std::uint32_t workers, double total, std::size_t buckets);

}  // namespace starling::model
