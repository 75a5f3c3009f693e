// What a worker of a simulation did from when to when, for drawings. Slices of one worker that are
// not exchanges do not overlap, and neither do its exchanges.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "starling/base/time.h"
#include "starling/base/units.h"

namespace starling::sim {

struct Slice {
  enum class What : std::uint8_t {
    Delay,
    Forward,
    Backward,
    Update,
    WaitForStraggler,
    WaitForExchange,
    Exchange,  // by the engine, beside the rest
  };
  What what = What::Forward;
  Rank worker{};
  std::int64_t number = 0;  // of the step; of an exchange: its version
  std::optional<std::size_t> part{};
  std::size_t members = 0;  // of an exchange
  Time begin{};
  Time end{};
};

}  // namespace starling::sim
