// How far apart workers stay when every step adds noise: x <- W (x + e), e i.i.d. of unit variance.
// Values are expected squared deviations per worker after mixing; after the noise is added they are
// greater by 1 − 1/n.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "starling/topology/mixing.h"
#include "starling/topology/spectrum.h"

namespace starling::topology {

// One value per step of the period, after that step. None if the deviation grows without bound (the
// schedule does not connect everybody), or dies out too slowly to be summed within
// max(100, 2·10⁸ / workers²) steps of workers² each; what the period's spectrum shows to be
// hopeless is not begun.
std::optional<std::vector<double>> stationary_deviation(std::span<const Mixing> period,
                                                        const Spectrum& spectrum);

}  // namespace starling::topology
