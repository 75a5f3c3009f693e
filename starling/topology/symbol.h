// Schedules that look the same from every g-th worker, g = 1 or 2: rings and directed exponential
// graphs. Shifted by g the matrix is the same, so the Fourier transform splits it into g × g
// blocks, one per frequency, and long-run questions have answers at any size.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "starling/topology/mixing.h"
#include "starling/topology/spectrum.h"

namespace starling::topology {

// Whether all steps of the period are invariant, with few terms per row. Cheap. 0: they are not.
std::uint32_t shift_invariance(std::span<const Mixing> period);

struct SymbolAnalysis {
  Spectrum spectrum;
  std::vector<double> stationary;  // as in stationary.h
};

// None if the schedule leaves a deviation that never dies out.
// Requires: shift = shift_invariance(period) > 0.
std::optional<SymbolAnalysis> analyse_symbol(std::span<const Mixing> period, std::uint32_t shift);

}  // namespace starling::topology
