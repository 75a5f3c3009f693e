// The memory traffic of an all-reduce and nothing else: every source is read once, and their sum is
// written once to every result, past the caches.
#pragma once

#include <cstddef>
#include <span>

namespace starling::rivals {

inline constexpr std::size_t kLineFloats = 16;  // 64 bytes

// Elements begin … end − 1. Requires: begin and end are multiples of kLineFloats, all
// buffers are aligned to 64 bytes, and there are as many results as sources, at least one.
using Sum = void(std::span<float* const> results, std::span<const float* const> sources,
                 std::size_t begin, std::size_t end);

// By the product's kernels, in chunks of 64 KiB.
Sum sum_by_kernels;

// As fast as this compiler and machine do it: no call and no fence per chunk. Defined for chunks of
// 32, 256 and 1024 floats. Streams only on x86; elsewhere it stores plainly.
template <std::size_t kChunk>
Sum sum_by_hand;

}  // namespace starling::rivals
