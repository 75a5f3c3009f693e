// A worker's row of the mixing matrix at one step. Either it averages in a group,
//   x_i' = self_weight * x_i + other_weight * sum over the other members,
// or it takes from weighted in-neighbours (neighbours.h). Both kinds may occur in one step; groups
// are closed: all members of a group have the same one.
#pragma once

#include <utility>
#include <variant>

#include "starling/topology/neighbours.h"
#include "starling/topology/ranks.h"

namespace starling::topology {

// Members in order of rank, the worker itself included: a group of one keeps what it has.
struct Group {
  Ranks members;
  double self_weight = 1;

  bool is_uniform() const { return self_weight == 1.0 / static_cast<double>(members.size()); }
  // What each other member's model counts; in a uniform group the same as the own.
  double other_weight() const {
    return is_uniform() ? self_weight : (1 - self_weight) / static_cast<double>(members.size() - 1);
  }
  friend bool operator==(const Group&, const Group&) = default;
};

using Row = std::variant<Group, Neighbours>;

// All members count the same.
inline Group uniform_group(Ranks members) {
  const double weight = 1.0 / static_cast<double>(members.size());
  return {std::move(members), weight};
}

}  // namespace starling::topology
