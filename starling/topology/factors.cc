#include "starling/topology/factors.h"

#include <algorithm>

namespace starling::topology {
namespace {

// n^(1/count) rounded up: the largest of `count` factors is at least that.
bool too_small(std::uint64_t factor, std::uint32_t count, std::uint64_t n) {
  std::uint64_t power = 1;
  for (std::uint32_t i = 0; i < count && power < n; ++i) {
    power *= factor;
  }
  return power < n;
}

bool is_smooth(std::uint32_t n, std::uint32_t limit) {
  for (std::uint32_t f = 2; f <= limit && n > 1; ++f) {
    while (n % f == 0) {
      n /= f;
    }
  }
  return n == 1;
}

}  // namespace

std::uint32_t ceil_log(std::uint32_t n, std::uint32_t base) {
  std::uint32_t rounds = 0;
  for (std::uint64_t reach = 1; reach < n; reach *= base) {
    ++rounds;
  }
  return rounds;
}

std::optional<std::vector<std::uint32_t>> flattest_factors(std::uint32_t n, std::uint32_t count,
                                                           std::uint32_t limit) {
  if (count == 0) {
    return n == 1 ? std::optional(std::vector<std::uint32_t>{}) : std::nullopt;
  }
  for (std::uint32_t factor = 1; factor <= std::min(limit, n); ++factor) {
    if (n % factor != 0 || too_small(factor, count, n)) {
      continue;
    }
    if (auto rest = flattest_factors(n / factor, count - 1, factor)) {
      rest->insert(rest->begin(), factor);
      return rest;
    }
  }
  return std::nullopt;
}

std::optional<std::vector<std::uint32_t>> fewest_factors(std::uint32_t n, std::uint32_t limit) {
  if (!is_smooth(n, limit)) {
    return std::nullopt;
  }
  for (std::uint32_t count = limit > 1 ? ceil_log(n, limit) : 0;; ++count) {
    if (auto factors = flattest_factors(n, count, limit)) {
      return factors;
    }
  }
}

}  // namespace starling::topology
