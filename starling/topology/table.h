// A schedule that is written down: a list of steps, repeated. What a file:PATH schedule becomes.
// A lost worker is taken out of a group; out of a step of edges it is eliminated,
//   w_ij <- w_ij + w_id · w_dj / (1 − w_dd),
// as if it had passed on at once what it received, which keeps all row and column sums. That walks
// the edges of the step at every call.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "starling/topology/schedule.h"

namespace starling::topology {

// Every rank in exactly one group.
struct GroupStep {
  std::vector<Group> groups;
  std::vector<std::uint32_t> group_of;  // by rank
};

// By rank; rows sum to 1.
struct EdgeStep {
  std::vector<Neighbours> rows;
};

using TableStep = std::variant<GroupStep, EdgeStep>;

// Requires: steps not empty and sound, all for `workers` ranks.
std::unique_ptr<Schedule> make_table(std::uint32_t workers, std::vector<TableStep> steps);

}  // namespace starling::topology
