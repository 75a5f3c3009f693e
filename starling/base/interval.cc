#include "starling/base/interval.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "starling/base/error.h"

namespace starling {
namespace {

constexpr double kConfidence = 0.95;

// How much of Student's distribution lies within ±t, where t = sqrt(degrees) tan(angle): the finite
// series for whole degrees (Abramowitz and Stegun 26.7.3 and 26.7.4).
double student_within(double angle, std::size_t degrees) {
  const double cosine = std::cos(angle);
  const bool is_odd = degrees % 2 == 1;
  double term = is_odd ? cosine : 1;
  double sum = degrees == 1 ? 0 : term;
  for (std::size_t k = is_odd ? 3 : 2; k < degrees; k += 2) {
    const auto n = static_cast<double>(k);
    term *= cosine * cosine * (n - 1) / n;
    sum += term;
  }
  return is_odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

std::vector<double> logarithms_of(std::span<const double> values) {
  std::vector<double> logarithms;
  for (const double value : values) {
    check(value > 0, "the logarithm of {}", value);
    logarithms.push_back(std::log(value));
  }
  return logarithms;
}

}  // namespace

double student_quantile(std::size_t degrees) {
  check(degrees > 0, "Student's distribution of no degree of freedom");
  double low = 0;
  double high = std::numbers::pi / 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_within(middle, degrees) < kConfidence ? low : high) = middle;
  }
  return std::sqrt(static_cast<double>(degrees)) * std::tan(low);
}

double mean_of(std::span<const double> values) {
  check(!values.empty(), "the mean of nothing");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double geometric_mean_of(std::span<const double> values) {
  return std::exp(mean_of(logarithms_of(values)));
}

std::optional<Interval> interval_of(std::span<const double> values) {
  if (values.size() < 2) {
    return std::nullopt;
  }
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) {
    squares += (value - mean) * (value - mean);
  }
  const auto degrees = static_cast<double>(values.size() - 1);
  const double error = std::sqrt(squares / degrees / static_cast<double>(values.size()));
  const double half = student_quantile(values.size() - 1) * error;
  return Interval{.mean = mean, .low = mean - half, .high = mean + half};
}

std::optional<Interval> interval_of_ratios(std::span<const double> values) {
  const std::optional<Interval> interval = interval_of(logarithms_of(values));
  if (!interval) {
    return std::nullopt;
  }
  return Interval{.mean = std::exp(interval->mean),
                  .low = std::exp(interval->low),
                  .high = std::exp(interval->high)};
}

}  // namespace starling
