#include "starling/base/random.h"

#include <cmath>
#include <numbers>

namespace starling {
namespace {

constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

// The finalizer of SplitMix64: spreads nearby stream numbers over all 64 bits.
constexpr std::uint64_t spread(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {high(b) ^ counter[1] ^ key[0], low(b), high(a) ^ counter[3] ^ key[1], low(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

Random Random::stream(std::uint64_t number) const {
  return Random(seed_, spread(stream_ + 0x9E3779B97F4A7C15u * (number + 1)));
}

std::uint64_t Random::bits(std::uint64_t index) const {
  const auto block =
      philox4x32({low(index), high(index), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
  return (std::uint64_t{block[1]} << 32) | block[0];
}

double Random::uniform(std::uint64_t index) const { return to_unit(bits(index)); }

std::uint64_t Random::below(std::uint64_t bound, std::uint64_t index) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * bound) >> 64);
}

double Random::normal(std::uint64_t index) const {
  // Box and Muller, both uniforms from one block.
  const auto block =
      philox4x32({low(index), high(index), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
  const double u = 1.0 - to_unit((std::uint64_t{block[1]} << 32) | block[0]);
  const double v = to_unit((std::uint64_t{block[3]} << 32) | block[2]);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace starling
