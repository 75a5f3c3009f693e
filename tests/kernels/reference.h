// What the kernels must compute, in the plainest scalar code, and buffers with guards around them.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "starling/base/random.h"

namespace starling::kernels {

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <typename T>
BitsOf<T> bits_of(T x) {
  return std::bit_cast<BitsOf<T>>(x);
}

// Level by level, as the contract says it.
template <typename T>
T tree(std::vector<T> level) {
  while (level.size() > 1) {
    std::vector<T> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) {
      next.push_back(level[i] + level[i + 1]);
    }
    if (level.size() % 2 == 1) {
      next.push_back(level.back());
    }
    level = next;
  }
  return level[0];
}

template <typename T>
T one_nan(T x) {
  return std::isnan(x) ? std::numeric_limits<T>::quiet_NaN() : x;
}

// Values of very different size, so that every change of order shows, and a few special ones.
template <typename T>
std::vector<T> values(std::size_t size, std::uint64_t seed) {
  const Random random(seed);
  std::vector<T> result(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t draw = random.below(1000, 2 * i);
    const T x = static_cast<T>(random.normal(2 * i + 1));
    result[i] = draw == 0   ? std::numeric_limits<T>::infinity()
                : draw == 1 ? -std::numeric_limits<T>::quiet_NaN()
                : draw == 2 ? T{-0.0}
                : draw == 3 ? std::numeric_limits<T>::denorm_min()
                            : std::ldexp(x, static_cast<int>(draw % 41) - 20);
  }
  return result;
}

// `size` elements at an odd place in memory, with elements before and after that must not change.
template <typename T>
class Guarded {
 public:
  Guarded(std::size_t size, std::size_t offset)
      : memory_(size + 2 * kGuard + offset, guard()), offset_(offset), size_(size) {}

  std::span<T> span() { return {memory_.data() + kGuard + offset_, size_}; }

  void expect_guards_untouched() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if (i < kGuard + offset_ || i >= kGuard + offset_ + size_) {
        ASSERT_EQ(memory_[i], guard()) << "element " << i << " of " << memory_.size();
      }
    }
  }

 private:
  static constexpr std::size_t kGuard = 40;
  static T guard() {
    T value{};
    auto* bytes = reinterpret_cast<unsigned char*>(&value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes[i] = static_cast<unsigned char>(0x51 + i);
    }
    return value;
  }

  std::vector<T> memory_;
  std::size_t offset_;
  std::size_t size_;
};

template <typename T>
void expect_same_bits(std::span<const T> got, const std::vector<T>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(bits_of(got[i]), bits_of(wanted[i])) << "element " << i << " of " << wanted.size();
  }
}

}  // namespace starling::kernels
