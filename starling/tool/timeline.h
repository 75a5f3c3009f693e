// What one worker of a run did when: its steps, and the exchange that each of them used. Read from
// the metrics and the ledger that starling-train leaves in its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/time.h"
#include "starling/base/units.h"

namespace starling::tool {

struct StepSpan {
  std::uint64_t step = 0;
  Time begin{};
  Time end{};
  Duration waited{0};                               // for the exchange
  std::optional<std::pair<Time, Time>> exchange{};  // none: it was void
};

// From step `first` on. Throws Error{Input} naming what cannot be read.
std::vector<StepSpan> read_timeline(const std::filesystem::path& folder, Rank worker,
                                    std::uint64_t first);

// Less than this is not waiting: threads hand over to each other.
inline constexpr Duration kNoWait = std::chrono::microseconds(100);

// Whether the exchange had ended before its step needed it.
inline bool in_time(const StepSpan& step) { return step.waited < kNoWait; }

// Rows of text, one column per so many microseconds: computing and updating, exchanges, waiting.
// Requires: some steps.
std::string draw_timeline(std::span<const StepSpan> steps);

}  // namespace starling::tool
