// How far apart workers stay when every step adds noise: x <- W (x + e), e i.i.d. of unit variance.
// Values are expected squared deviations per worker after mixing; after the noise is added they are
// greater by 1 − 1/n.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "starling/topology/mixing.h"

namespace starling::topology {

// One value per step of the period, after that step. None if the deviation grows without bound (the
// schedule does not connect everybody), or dies out too slowly to be summed: within
// max(100, 2·10⁸ / workers²) steps, by workers² each.
// Schedules that look the same from every worker, or from every second one (rings, directed
// exponential graphs), are summed per frequency at any size instead.
std::optional<std::vector<double>> stationary_deviation(std::span<const Mixing> period);

}  // namespace starling::topology
