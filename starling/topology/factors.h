// Writing a number of workers as a product of small group sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace starling::topology {

// ⌈log_base n⌉ in whole numbers. Requires: n >= 1, base >= 2.
std::uint32_t ceil_log(std::uint32_t n, std::uint32_t base);

// `count` factors of n, none above `limit`, falling, the largest as small as possible (then the
// next, …); none if there are no such factors. Factors of 1 are allowed.
std::optional<std::vector<std::uint32_t>> flattest_factors(std::uint32_t n, std::uint32_t count,
                                                           std::uint32_t limit);

// As few factors as possible; none if a prime factor of n exceeds `limit`. Empty for n = 1.
std::optional<std::vector<std::uint32_t>> fewest_factors(std::uint32_t n, std::uint32_t limit);

}  // namespace starling::topology
