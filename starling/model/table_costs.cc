#include "starling/model/table_costs.h"

#include <algorithm>
#include <utility>

#include "starling/base/error.h"

namespace starling::model {

TableCosts::TableCosts(std::uint32_t workers, std::uint32_t per_node,
                       std::vector<PhaseCosts> phases, BucketSeconds everybody)
    : workers_(workers),
      per_node_(per_node),
      phases_(std::move(phases)),
      everybody_(std::move(everybody)) {
  require(per_node >= 1, "exchange costs: at least one worker per node");
  require(!phases_.empty(), "exchange costs: no phases");
  const auto check_list = [&](const BucketSeconds& list) {
    require(list.size() == everybody_.size(), "exchange costs: {} buckets here, {} there",
            list.size(), everybody_.size());
    require(std::all_of(list.begin(), list.end(), [](double s) { return s >= 0; }),
            "exchange costs: a negative time");
  };
  check_list(everybody_);
  for (const PhaseCosts& phase : phases_) {
    check_list(phase.inside);
    check_list(phase.across);
  }
}

void TableCosts::seconds(std::size_t bucket, Step step, std::span<const Exchange> active,
                         std::span<double> out) const {
  check(bucket < everybody_.size(), "no costs of bucket {}", bucket);
  const PhaseCosts& phase = phases_[static_cast<std::size_t>(step.value) % phases_.size()];
  for (std::size_t i = 0; i < active.size(); ++i) {
    const std::span<const Rank> members = active[i].members;
    if (members.size() <= 1) {
      out[i] = 0;
    } else if (active[i].closed && members.size() == workers_) {
      out[i] = everybody_[bucket];
    } else {
      const std::uint32_t node = members.front().value / per_node_;
      const bool inside = std::all_of(members.begin(), members.end(),
                                      [&](Rank r) { return r.value / per_node_ == node; });
      out[i] = (inside ? phase.inside : phase.across)[bucket];
    }
  }
}

TableCosts equal_costs(std::uint32_t workers, double total, std::size_t buckets) {
  const BucketSeconds each(buckets, total / static_cast<double>(buckets));
  return TableCosts(workers, workers, {{.inside = each, .across = each}}, each);
}

}  // namespace starling::model
