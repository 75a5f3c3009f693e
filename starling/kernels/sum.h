// The sum of a round: one fixed binary tree over the sources in order, element by element.
//
// Level by level neighbours (0,1), (2,3) … are added; an odd last one passes to the next level as
// it is. Equivalently: the left part of k sources is the largest power of two below k. Additions
// are rounded one by one, never fused, so the bits depend on nothing but the sources: not on the
// instruction set, the length, the alignment or how a caller cuts a buffer into chunks. A result
// that is not a number is always the same quiet NaN.
//
// Requires: at least one source; each holds into.size() elements. `into` may be exactly the memory
// of one of the sources and must not overlap any of them otherwise. Any length, any alignment of
// elements. Threads: pure functions over their arguments.
//
// Cost: every source is read once and `into` written once; partial sums stay in registers, or in
// the first-level cache beyond eight sources.
#pragma once

#include <span>

#include "starling/kernels/store.h"

namespace starling::kernels {

// One source is copied, bit for bit.
void sum(std::span<float> into, std::span<const float* const> sources, Store store = Store::Cached);
void sum(std::span<double> into, std::span<const double* const> sources,
         Store store = Store::Cached);

// The sum, then multiplied by `scale`.
void scaled_sum(std::span<float> into, std::span<const float* const> sources, float scale,
                Store store = Store::Cached);
void scaled_sum(std::span<double> into, std::span<const double* const> sources, double scale,
                Store store = Store::Cached);

}  // namespace starling::kernels
