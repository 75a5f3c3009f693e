// Step times in a file, for simulations that draw from what was measured: a JSON list of seconds,
// or of {"forward": s, "backward": s} or [forward, backward], of which each pair stays together.
#pragma once

#include <cstdint>
#include <string>

#include "starling/base/compute_times.h"

namespace starling::tool {

// `text` is a file if there is one of that name, or if it looks like one; otherwise what
// ComputeTimes reads. `forward`: what part of whole steps is the forward pass.
// Throws Error{Input}, one line: of a file with its name, the place in the list and the line.
ComputeTimes read_compute_times(const std::string& text, std::uint64_t seed, double forward);

}  // namespace starling::tool
