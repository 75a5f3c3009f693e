// What workers did when, as a file that Perfetto and chrome://tracing open (trace events in JSON):
// two tracks per worker, what its application did and what its engine exchanged beside that.
#pragma once

#include <iosfwd>
#include <span>

#include "starling/sim/slice.h"

namespace starling::tool {

void write_trace(std::ostream& file, std::span<const sim::Slice> slices);

}  // namespace starling::tool
