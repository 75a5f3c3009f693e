// Costs from the speed of links. A group of m averages S bytes in order of rank: along a ring, or
// directly (every member sends its part to every other, twice). Either way a member sends
// 2(m − 1)/m · S. What leaves a node goes through its card, which all exchanges of the step share:
//   seconds = latency · hops + max(sent by a member / local bandwidth,
//                                  most that passes a card of the group / bandwidth)
// A directed edge carries S. Ranks of a node are consecutive; cards send and receive at once.
#pragma once

#include <cstdint>
#include <vector>

#include "starling/base/units.h"
#include "starling/model/cards.h"
#include "starling/model/exchange_costs.h"

namespace starling::model {

struct Links {
  double latency = 0;             // seconds, between nodes
  double bandwidth = 1e9;         // bytes a second and direction, of a node's card
  double local_latency = 0;       // inside a node
  double local_bandwidth = 1e10;  // of one worker
  std::uint32_t per_node = 1;
};

class LinkCosts final : public ExchangeCosts {
 public:
  // Throws Error{Input} for speeds that are not positive, or negative latencies.
  LinkCosts(Links links, std::vector<Bytes> buckets, Volume volume = Volume::Ring);

  void seconds(std::size_t bucket, Step step, std::span<const Exchange> active,
               std::span<double> out) const override;

 private:
  Links links_;
  std::vector<Bytes> buckets_;
  Volume volume_;
};

}  // namespace starling::model
