// The sum of sum.h over sources that are still as they travelled: bit for bit what unpacking each
// of them (wire.h) and then summing gives, in one pass and without memory for what is unpacked.
//
// Requires: at least one source; each holds into.size() elements and none overlaps `into`. Any
// length, any alignment of elements. Threads: pure functions over their arguments.
#pragma once

#include <span>

#include "starling/kernels/wire.h"

namespace starling::kernels {

// One source is unpacked, bit for bit.
void sum_packed(std::span<float> into, std::span<const Bf16* const> sources);
void sum_packed(std::span<double> into, std::span<const Bf16* const> sources);

}  // namespace starling::kernels
