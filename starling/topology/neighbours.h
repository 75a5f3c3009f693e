// One worker's row and column of a mixing matrix W: what it takes from whom, and what it gives.
//   x_i' = self_weight * x_i + sum over in of weight_j * x_j
// Directed graphs are allowed: `in` and `out` need not name the same workers. Edges are sorted by
// peer, never name the worker itself, and are as its peers see them: i is in j's `out` with weight
// w exactly when j is in i's `in` with weight w.
#pragma once

#include <vector>

#include "starling/base/units.h"

namespace starling::topology {

struct Edge {
  Rank peer;
  double weight = 0;
  friend bool operator==(const Edge&, const Edge&) = default;
};

struct Neighbours {
  double self_weight = 1;
  std::vector<Edge> in;
  std::vector<Edge> out;
  friend bool operator==(const Neighbours&, const Neighbours&) = default;
};

}  // namespace starling::topology
