// A row of a mixing matrix applied to buffers: the tree of sum.h over weight times source. Products
// are rounded before they are added. The contract is that of sum.h, with one weight per source; a
// single source is multiplied, not copied.
#pragma once

#include <span>

#include "starling/kernels/store.h"

namespace starling::kernels {

void mix(std::span<float> into, std::span<const float* const> sources,
         std::span<const float> weights, Store store = Store::Cached);
void mix(std::span<double> into, std::span<const double* const> sources,
         std::span<const double> weights, Store store = Store::Cached);

}  // namespace starling::kernels
