// What a user who mistyped a name probably meant.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace starling {

// Least number of letters inserted, removed, replaced or swapped with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The first of the nearest. Requires: names not empty.
std::string_view nearest(std::string_view name, std::span<const std::string_view> names);

}  // namespace starling
