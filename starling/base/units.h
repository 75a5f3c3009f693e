// Strong numbers: a rank is not a step is not a number of bytes. Absent values are
// std::optional, never -1.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace starling {

// A worker. Ranks are 0 … size − 1 for the whole life of a job; nothing is renumbered.
struct Rank {
  std::uint32_t value = 0;
  constexpr std::size_t index() const { return value; }
  friend constexpr auto operator<=>(Rank, Rank) = default;
};

// A host. Workers of one node share its network card and can map each other's memory.
struct Node {
  std::uint32_t value = 0;
  constexpr std::size_t index() const { return value; }
  friend constexpr auto operator<=>(Node, Node) = default;
};

// A training step of one worker, counted from 0.
struct Step {
  std::int64_t value = 0;
  friend constexpr auto operator<=>(Step, Step) = default;
  friend constexpr Step operator+(Step s, std::int64_t n) { return {s.value + n}; }
  friend constexpr std::int64_t operator-(Step a, Step b) { return a.value - b.value; }
};

// An amount of data.
struct Bytes {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
  constexpr Bytes& operator+=(Bytes b) {
    value += b.value;
    return *this;
  }
};

// "100M", "64 KiB", "4096": K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024.
// Throws Error{Input} naming the text that cannot be read.
Bytes parse_bytes(std::string_view text);

// "104.9 MB": at most four digits, powers of 1000.
std::string to_string(Bytes bytes);
// The same of a number that was calculated.
inline std::string bytes_text(double bytes) {
  return to_string(Bytes{static_cast<std::uint64_t>(bytes)});
}

}  // namespace starling

template <>
struct std::hash<starling::Rank> {
  std::size_t operator()(starling::Rank r) const noexcept { return r.value; }
};

template <>
struct fmt::formatter<starling::Rank> : fmt::formatter<std::uint32_t> {
  template <typename Context>
  auto format(starling::Rank r, Context& context) const {
    return fmt::formatter<std::uint32_t>::format(r.value, context);
  }
};

template <>
struct fmt::formatter<starling::Step> : fmt::formatter<std::int64_t> {
  template <typename Context>
  auto format(starling::Step s, Context& context) const {
    return fmt::formatter<std::int64_t>::format(s.value, context);
  }
};
