// What a few paired measurements say: means with intervals of 95 % by Student's t, and what follows
// from them against a margin. Pure functions.
//
// Vocabulary: a pair is a configuration and the baseline with the same seed; a difference is of one
// pair. Intervals are of the mean over seeds; they take differences as normal and independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace starling::tool {

struct Interval {
  double mean = 0;
  double low = 0;
  double high = 0;
};

// t such that 95 % of Student's distribution lie within ±t. Requires: degrees > 0.
double student_quantile(std::size_t degrees);

// None for less than two values.
std::optional<Interval> interval_of(std::span<const double> values);

// The same through logarithms: mean is the geometric one. Requires: values above 0.
std::optional<Interval> interval_of_ratios(std::span<const double> values);

double mean_of(std::span<const double> values);  // Requires: some
double geometric_mean_of(std::span<const double> values);

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
