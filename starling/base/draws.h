// One seed of a run, for several purposes that must not depend on each other.
#pragma once

#include <cstdint>

#include "starling/base/random.h"

namespace starling {

enum class Purpose : std::uint64_t { Shuffle = 1, Delay = 2, Compute = 3, Model = 4 };

inline Random draws(std::uint64_t seed, Purpose purpose) {
  return Random(seed).stream(static_cast<std::uint64_t>(purpose));
}

}  // namespace starling
