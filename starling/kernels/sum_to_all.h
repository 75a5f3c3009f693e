// The sum of sum.h, bit for bit, written to several places at once, past the caches: every source
// is read once, every result written once, and the sum itself never leaves the registers (up to
// eight sources) or the first-level cache. Complete (fenced) when it returns.
//
// Requires: at least one source and one result, of `size` elements each; results overlap neither
// each other nor a source. Any alignment; it is fastest when all results begin at line boundaries.
#pragma once

#include <cstddef>
#include <span>

namespace starling::kernels {

void sum_to_all(std::span<float* const> into, std::size_t size,
                std::span<const float* const> sources);
void sum_to_all(std::span<double* const> into, std::size_t size,
                std::span<const double* const> sources);

}  // namespace starling::kernels
