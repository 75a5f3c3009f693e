#include "starling/base/permutation.h"

#include <bit>

namespace starling {
namespace {

// Bits of one half, scrambled under a round's key (the finalizer of MurmurHash3).
constexpr std::uint32_t scramble(std::uint32_t half, std::uint64_t key) {
  std::uint64_t x = (half + key) * 0xFF51AFD7ED558CCDu;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53u;
  return static_cast<std::uint32_t>(x >> 32);
}

constexpr std::uint32_t mask(std::uint32_t bits) { return (std::uint32_t{1} << bits) - 1; }

}  // namespace

Permutation::Permutation(const Random& key, std::uint32_t size) : size_(size) {
  const auto bits = static_cast<std::uint32_t>(std::bit_width(size - 1));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
  rounds_ = bits <= 6 ? kMostRounds : kMostRounds / 2;
  // Four rounds share a draw, each turned differently.
  for (std::size_t round = 0; round < rounds_; round += 4) {
    const std::uint64_t drawn = key.bits(round / 4);
    for (int turn = 0; turn < 4; ++turn) {
      keys_[round + turn] = std::rotl(drawn, 16 * turn);
    }
  }
}

// Each round adds (XOR) to one half what the other half says: its own inverse.
std::uint32_t Permutation::forward(std::uint32_t x) const {
  std::uint32_t low = x & mask(low_bits_);
  std::uint32_t high = x >> low_bits_;
  for (std::size_t round = 0; round < rounds_; round += 2) {
    high ^= scramble(low, keys_[round]) & mask(high_bits_);
    low ^= scramble(high, keys_[round + 1]) & mask(low_bits_);
  }
  return (high << low_bits_) | low;
}

std::uint32_t Permutation::backward(std::uint32_t x) const {
  std::uint32_t low = x & mask(low_bits_);
  std::uint32_t high = x >> low_bits_;
  for (std::size_t round = rounds_; round > 0; round -= 2) {
    low ^= scramble(high, keys_[round - 1]) & mask(low_bits_);
    high ^= scramble(low, keys_[round - 2]) & mask(high_bits_);
  }
  return (high << low_bits_) | low;
}

std::uint32_t Permutation::image(std::uint32_t element) const {
  do {
    element = forward(element);
  } while (element >= size_);
  return element;
}

std::uint32_t Permutation::origin(std::uint32_t image) const {
  do {
    image = backward(image);
  } while (image >= size_);
  return image;
}

}  // namespace starling
