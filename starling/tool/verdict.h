// What a few paired measurements say: means with intervals of 95 % by Student's t, and what follows
// from them against a margin. Pure functions.
//
// Vocabulary: a pair is a configuration and the baseline with the same seed; a difference is of one
// pair. Intervals are of the mean over seeds; they take differences as normal and independent.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "starling/base/interval.h"

namespace starling::tool {

enum class Verdict : std::uint8_t { Better, Equal, Worse, Undecided, None };
std::string_view name_of(Verdict verdict);

// Of differences where more is better. Equal: the whole interval lies within ±margin. Better and
// worse: it lies on one side of 0. None: there is no interval.
Verdict judge(const std::optional<Interval>& difference, double margin);

enum class Pace : std::uint8_t { Sooner, Later, Undecided, None };
std::string_view name_of(Pace pace);

// Of ratios baseline / configuration of times: sooner if the interval lies above 1.
Pace judge_pace(const std::optional<Interval>& ratio);

}  // namespace starling::tool
