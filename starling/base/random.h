// Counter-based random numbers (Philox 4x32-10, Salmon et al., SC'11): draw number i of stream s
// is a pure function of (seed, s, i), whatever was drawn before, so schedules replay from a seed
// and workers that share a seed agree without talking.
#pragma once

#include <array>
#include <cstdint>

namespace starling {

// The block function: 128 bits of counter, 64 bits of key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// Pure: the draws of one (seed, stream).
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  // An independent family of draws, such as one per worker or per link.
  Random stream(std::uint64_t number) const;

  std::uint64_t bits(std::uint64_t index) const;
  // In [0, 1), 53 random bits.
  double uniform(std::uint64_t index) const;
  // In [0, bound), without bias worth measuring (2^-64 per value). Requires: bound > 0.
  std::uint64_t below(std::uint64_t bound, std::uint64_t index) const;
  // Mean 0, variance 1.
  double normal(std::uint64_t index) const;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

// Draws one after another; for code in which the order of draws is fixed anyway.
class RandomSequence {
 public:
  explicit RandomSequence(Random random) : random_(random) {}
  std::uint64_t bits() { return random_.bits(next_++); }
  double uniform() { return random_.uniform(next_++); }
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound, next_++); }
  double normal() { return random_.normal(next_++); }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};

}  // namespace starling
