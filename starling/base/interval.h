// Means of a few measurements with intervals of 95 % by Student's t. Pure functions; they take
// values as normal and independent.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace starling {

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

}  // namespace starling
