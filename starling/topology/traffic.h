// What a schedule sends, for a model of B bytes. A group of m averages along a ring in order of
// rank, so that each of its m links carries 2(m − 1)/m · B; a neighbour's model is B. Ranks of a
// node are consecutive; its network card sees what crosses the node's border. All values are bytes
// in one direction in one step, of the busiest link or card.
#pragma once

#include <cstdint>
#include <span>

#include "starling/topology/schedule.h"

namespace starling::topology {

struct Traffic {
  double link_peak = 0;  // one worker to another
  double node_mean = 0;  // over the steps, of the card that is busiest in the mean
  double node_peak = 0;  // the most that a card sends or receives in a step
};

// Of steps 0 … steps − 1. Requires: steps >= 1, per_node >= 1.
Traffic traffic(const Schedule& schedule, const View& view, std::int64_t steps,
                std::uint32_t per_node, Bytes model);

}  // namespace starling::topology
