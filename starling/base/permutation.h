// A keyed permutation of 0 … size − 1: any element's image or origin in O(1), without a table. An
// alternating Feistel network on the least number of bits that holds `size`; what falls outside is
// walked on along its cycle, fewer than one extra step on average. Halves of one or two bits mix
// slowly, so that small sets take more rounds.
#pragma once

#include <array>
#include <cstdint>

#include "starling/base/random.h"

namespace starling {

class Permutation {
 public:
  // Requires: size >= 1.
  Permutation(const Random& key, std::uint32_t size);

  std::uint32_t image(std::uint32_t element) const;
  std::uint32_t origin(std::uint32_t image) const;

 private:
  static constexpr std::size_t kMostRounds = 24;
  std::uint32_t forward(std::uint32_t x) const;
  std::uint32_t backward(std::uint32_t x) const;

  std::uint32_t size_;
  std::uint32_t low_bits_;
  std::uint32_t high_bits_;
  std::size_t rounds_;
  std::array<std::uint64_t, kMostRounds> keys_{};
};

}  // namespace starling
