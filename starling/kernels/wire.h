// Sixteen-bit numbers on the wire, and the way there and back.
//
//   Bf16  sign, 8 bits of exponent, 7 of fraction: the upper half of a float
//   Fp16  sign, 5 bits of exponent, 10 of fraction: IEEE 754 binary16
//
// pack rounds to the nearest, ties to even, in one step (a double too): subnormals are kept, what
// is too large becomes infinite. unpack is exact. A NaN stays a NaN, with its sign and the upper
// part of its payload, and is made quiet on either way. The same bits on every instruction set.
//
// Requires: equal sizes, no overlap. Any length, any alignment of elements. Threads: pure.
#pragma once

#include <cstdint>
#include <span>

namespace starling::kernels {

struct Bf16 {
  std::uint16_t bits = 0;
  friend bool operator==(Bf16, Bf16) = default;
};

struct Fp16 {
  std::uint16_t bits = 0;
  friend bool operator==(Fp16, Fp16) = default;
};

void pack(std::span<Bf16> into, std::span<const float> from);
void pack(std::span<Bf16> into, std::span<const double> from);
void pack(std::span<Fp16> into, std::span<const float> from);
void pack(std::span<Fp16> into, std::span<const double> from);

void unpack(std::span<float> into, std::span<const Bf16> from);
void unpack(std::span<double> into, std::span<const Bf16> from);
void unpack(std::span<float> into, std::span<const Fp16> from);
void unpack(std::span<double> into, std::span<const Fp16> from);

}  // namespace starling::kernels
