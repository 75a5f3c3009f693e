// What one period does to deviations in the long run.
#pragma once

#include <optional>
#include <span>

#include "starling/topology/mixing.h"

namespace starling::topology {

struct Spectrum {
  // ‖(I − J) M‖₂, M the product of one period: no deviation shrinks by less in one period.
  double norm = 0;
  // The spectral radius of (I − J) M: the factor per period in the long run. At most the norm.
  std::optional<double> factor;
};

// O(period · workers) per step of the iteration. The norm has 12 digits or more. So has the factor
// for symmetric, normal and twofold alternating periods; for others two or three, and it is left
// out if it does not settle. Requires: the period is not exact (both are 0 then).
Spectrum spectrum(std::span<const Mixing> period);

}  // namespace starling::topology
