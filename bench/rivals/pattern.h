// The inputs of the ranks and what they add up to: small whole numbers, different for every rank
// and from place to place.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

namespace starling::rivals {

inline float pattern(std::size_t i) { return static_cast<float>(1 + i % 251); }

inline void fill_input(std::span<float> input, int rank) {
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] = pattern(i) * static_cast<float>(rank + 1);
  }
}

// One number per page.
inline void spoil_result(std::span<float> result) {
  for (std::size_t i = 0; i < result.size(); i += 1024) {
    result[i] = std::numeric_limits<float>::quiet_NaN();
  }
}

inline bool is_sum(std::span<const float> result, int ranks) {
  const float factor = 0.5F * static_cast<float>(ranks * (ranks + 1));
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] != pattern(i) * factor) {
      return false;
    }
  }
  return true;
}

}  // namespace starling::rivals
