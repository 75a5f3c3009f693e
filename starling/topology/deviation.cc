#include "starling/topology/deviation.h"

#include <algorithm>

#include "starling/base/random.h"

namespace starling::topology {
namespace {

constexpr std::size_t kWidth = 16;  // vectors at a time: 4,096 workers fill half a megabyte

// An exact round takes the squared deviation from somewhere above 1e-6 to rounding, about 1e-32;
// schedules that only converge lose at most a few digits per round.
constexpr double kSuddenDrop = 1e-15;

double squared_deviation(std::vector<double>& x) {
  remove_mean(x, kWidth);
  double sum = 0;
  for (const double value : x) {
    sum += value * value;
  }
  return sum;
}

}  // namespace

std::vector<double> deviation_left(std::span<const Mixing> rounds) {
  const std::uint32_t n = rounds.empty() ? 1 : rounds.front().workers();
  std::vector<double> left(rounds.size() + 1, 0.0);
  if (n == 1) {
    return left;
  }
  std::vector<double> x(n * kWidth);
  for (std::uint32_t first = 0; first < n; first += kWidth) {
    // Columns first … of the product, without their mean, which row-stochastic rounds only carry
    // along.
    std::fill(x.begin(), x.end(), 0.0);
    for (std::uint32_t c = 0; c < kWidth && first + c < n; ++c) {
      x[(first + c) * kWidth + c] = 1;
    }
    remove_mean(x, kWidth);
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      rounds[r].apply(x, kWidth);
      left[r + 1] += squared_deviation(x) / (n - 1);
    }
  }
  for (double& value : left) {
    value = value < 1e-28 ? 0 : value;
  }
  left[0] = 1;
  return left;
}

std::optional<std::int64_t> rounds_to_exact(std::span<const Mixing> rounds) {
  const std::uint32_t n = rounds.empty() ? 1 : rounds.front().workers();
  if (n == 1) {
    return 0;
  }
  RandomSequence random{Random(1)};
  std::vector<double> x(n * kWidth);
  std::generate(x.begin(), x.end(), [&] { return random.normal(); });
  double before = squared_deviation(x);
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    rounds[r].apply(x, kWidth);
    const double after = squared_deviation(x);
    if (after < kSuddenDrop * before) {
      return static_cast<std::int64_t>(r) + 1;
    }
    before = after;
  }
  return std::nullopt;
}

}  // namespace starling::topology
