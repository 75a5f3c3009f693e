#include "starling/kernels/wire.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "starling/base/error.h"
#include "tests/kernels/every_target.h"
#include "tests/kernels/reference.h"

namespace starling::kernels {
namespace {

// The formats as their definitions state them.
template <typename Wire>
struct Format;
template <>
struct Format<Bf16> {
  static constexpr int kFraction = 7, kBias = 127;
};
template <>
struct Format<Fp16> {
  static constexpr int kFraction = 10, kBias = 15;
};

template <typename Wire>
constexpr unsigned kInfinity = 0x7fffu >> Format<Wire>::kFraction << Format<Wire>::kFraction;

// The value of a pattern without its sign; for infinity, the power of two that would follow.
template <typename Wire>
double magnitude(unsigned pattern) {
  const int exponent = static_cast<int>(pattern >> Format<Wire>::kFraction);
  const unsigned fraction = pattern & ((1u << Format<Wire>::kFraction) - 1);
  const unsigned one = exponent == 0 ? 0 : 1u << Format<Wire>::kFraction;
  return std::ldexp(one + fraction,
                    std::max(exponent, 1) - Format<Wire>::kBias - Format<Wire>::kFraction);
}

// Nearest by search: the neighbours of |x|, and on which side of their exact middle it lies.
template <typename Wire>
unsigned nearest(double x) {
  unsigned low = 0;
  unsigned high = kInfinity<Wire>;
  if (x >= magnitude<Wire>(high)) {
    return high;
  }
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    (magnitude<Wire>(middle) <= x ? low : high) = middle;
  }
  const double middle = (magnitude<Wire>(low) + magnitude<Wire>(high)) / 2;
  return x < middle || (x == middle && low % 2 == 0) ? low : high;
}

template <typename Wire, typename T>
Wire packed(T x) {
  const unsigned sign = std::signbit(x) ? 0x8000u : 0;
  if (std::isnan(x)) {
    const unsigned fraction = (1u << Format<Wire>::kFraction) - 1;
    const auto payload =
        bits_of(x) >> (std::numeric_limits<T>::digits - 1 - Format<Wire>::kFraction);
    const unsigned quiet = 1u << (Format<Wire>::kFraction - 1);
    return {static_cast<std::uint16_t>(sign | kInfinity<Wire> | quiet |
                                       (static_cast<unsigned>(payload) & fraction))};
  }
  return {static_cast<std::uint16_t>(sign | nearest<Wire>(std::fabs(static_cast<double>(x))))};
}

// Every value of the format, every middle between two, and the numbers of T just beside them; then
// random patterns.
template <typename Wire, typename T>
std::vector<T> difficult_numbers() {
  std::vector<T> result;
  const T top = std::numeric_limits<T>::infinity();
  for (unsigned p = 0; p < kInfinity<Wire>; ++p) {
    const T value = static_cast<T>(magnitude<Wire>(p));
    const T middle = static_cast<T>((magnitude<Wire>(p) + magnitude<Wire>(p + 1)) / 2);
    for (const T x : {value, middle}) {
      for (const T y : {x, std::nextafter(x, top), std::nextafter(x, -top)}) {
        result.push_back(p % 3 == 0 ? -y : y);
      }
    }
  }
  for (const T x : {top, std::numeric_limits<T>::max(), std::numeric_limits<T>::denorm_min(),
                    std::numeric_limits<T>::min(), T{0}, std::numeric_limits<T>::quiet_NaN(),
                    static_cast<T>(magnitude<Wire>(kInfinity<Wire>))}) {
    result.push_back(x);
    result.push_back(-x);
  }
  const Random random(11);
  for (std::size_t i = 0; i < 100'000; ++i) {
    result.push_back(std::bit_cast<T>(static_cast<BitsOf<T>>(random.bits(i))));
    // The same with an exponent in or near the format's range.
    result.push_back(std::ldexp(static_cast<T>(random.normal(i)), static_cast<int>(i % 60) - 40));
  }
  for (int i = 0; i < 2000; ++i) {  // NaN of all kinds
    const auto exponent = bits_of(std::numeric_limits<T>::infinity());
    const auto payload = bits_of(result[result.size() - 1 - i]) & (bits_of(T{1}) - 1) & ~exponent;
    result.push_back(std::bit_cast<T>(static_cast<BitsOf<T>>(exponent | payload | 1)));
  }
  return result;
}

template <typename Wire, typename T>
void expect_packs_to_nearest() {
  static const std::vector<T> from = difficult_numbers<Wire, T>();
  static const std::vector<Wire> wanted = [] {
    std::vector<Wire> all;
    for (const T x : from) {
      all.push_back(packed<Wire>(x));
    }
    return all;
  }();
  std::vector<Wire> into(from.size());
  pack(into, from);
  for (std::size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(into[i].bits, wanted[i].bits)
        << std::hexfloat << from[i] << ", bits " << std::hex << bits_of(from[i]);
  }
}

template <typename Wire>
std::vector<Wire> every_pattern() {
  std::vector<Wire> all(0x10000);
  for (unsigned p = 0; p < all.size(); ++p) {
    all[p].bits = static_cast<std::uint16_t>(p);
  }
  return all;
}

template <typename Wire, typename T>
void expect_every_pattern_there_and_back() {
  const std::vector<Wire> all = every_pattern<Wire>();
  std::vector<T> wide(all.size());
  unpack(wide, all);
  std::vector<Wire> back(all.size());
  pack(back, wide);
  const unsigned quiet = 1u << (Format<Wire>::kFraction - 1);
  for (unsigned p = 0; p < all.size(); ++p) {
    const unsigned pattern = p & 0x7fff;
    ASSERT_EQ(std::signbit(wide[p]), p != pattern) << p;
    if (pattern > kInfinity<Wire>) {
      const int shift = std::numeric_limits<T>::digits - 1 - Format<Wire>::kFraction;
      const BitsOf<T> fraction = (pattern | quiet) - kInfinity<Wire>;
      const T wanted =
          std::bit_cast<T>(bits_of(std::numeric_limits<T>::infinity()) | fraction << shift);
      ASSERT_EQ(bits_of(std::fabs(wide[p])), bits_of(wanted)) << p;
      ASSERT_EQ(back[p].bits, p | quiet);
    } else {
      const T value = pattern == kInfinity<Wire> ? std::numeric_limits<T>::infinity()
                                                 : static_cast<T>(magnitude<Wire>(pattern));
      ASSERT_EQ(std::fabs(wide[p]), value) << p;
      ASSERT_EQ(back[p].bits, p);
    }
  }
}

// Short and crooked spans give what the long straight one gives.
template <typename Wire, typename T>
void expect_any_length_and_offset() {
  const std::vector<T> from = values<T>(100, 3);
  for (std::size_t n = 0; n <= 70; ++n) {
    const std::size_t offset = n % 19;
    Guarded<Wire> narrow(n, offset);
    pack(narrow.span(), std::span(from).subspan(offset, n));
    narrow.expect_guards_untouched();
    Guarded<T> wide(n, (offset + 3) % 7);
    unpack(wide.span(), narrow.span());
    wide.expect_guards_untouched();
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(narrow.span()[i], packed<Wire>(from[offset + i]));
      const unsigned pattern = narrow.span()[i].bits & 0x7fffu;
      if (pattern < kInfinity<Wire>) {
        ASSERT_EQ(std::fabs(wide.span()[i]), static_cast<T>(magnitude<Wire>(pattern)));
      }
    }
  }
}

class Wires : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Kernels, Wires, every_target(), target_name);

TEST_P(Wires, Bf16FromFloatIsNearest) { expect_packs_to_nearest<Bf16, float>(); }
TEST_P(Wires, Bf16FromDoubleIsNearest) { expect_packs_to_nearest<Bf16, double>(); }
TEST_P(Wires, Fp16FromFloatIsNearest) { expect_packs_to_nearest<Fp16, float>(); }
TEST_P(Wires, Fp16FromDoubleIsNearest) { expect_packs_to_nearest<Fp16, double>(); }

TEST_P(Wires, EveryPatternThereAndBack) {
  expect_every_pattern_there_and_back<Bf16, float>();
  expect_every_pattern_there_and_back<Bf16, double>();
  expect_every_pattern_there_and_back<Fp16, float>();
  expect_every_pattern_there_and_back<Fp16, double>();
}

TEST_P(Wires, AnyLengthAndOffset) {
  expect_any_length_and_offset<Bf16, float>();
  expect_any_length_and_offset<Bf16, double>();
  expect_any_length_and_offset<Fp16, float>();
  expect_any_length_and_offset<Fp16, double>();
}

// Written down by hand, against an error shared by kernel and reference.
TEST_P(Wires, KnownPatterns) {
  const float from[] = {1.0f, -2.0f, 65504.0f, 65519.0f, 65520.0f, 0x1p-24f, 0x1p-25f, 3.14159265f};
  std::vector<Fp16> half(8);
  pack(half, from);
  const std::vector<Fp16> halves = {{0x3c00}, {0xc000}, {0x7bff}, {0x7bff},
                                    {0x7c00}, {0x0001}, {0x0000}, {0x4248}};
  EXPECT_EQ(half, halves);
  std::vector<Bf16> brain(8);
  pack(brain, from);
  const std::vector<Bf16> brains = {{0x3f80}, {0xc000}, {0x4780}, {0x4780},
                                    {0x4780}, {0x3380}, {0x3300}, {0x4049}};
  EXPECT_EQ(brain, brains);
  // Just above a tie, by less than a float can tell: rounding twice would go down to even.
  const double above_tie[] = {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-11 + 0x1p-40};
  std::vector<Bf16> once(2);
  pack(once, above_tie);
  EXPECT_EQ(once[0].bits, 0x3f81);
  std::vector<Fp16> half_once(2);
  pack(half_once, above_tie);
  EXPECT_EQ(half_once[1].bits, 0x3c01);
}

TEST(WireContract, SizesAgree) {
  std::vector<Bf16> narrow(3);
  std::vector<float> wide(4);
  EXPECT_THROW(pack(narrow, wide), Error);
  EXPECT_THROW(unpack(wide, narrow), Error);
}

}  // namespace
}  // namespace starling::kernels
