#include "starling/model/closed_forms.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "starling/base/error.h"

namespace starling::model {
namespace {

// Beyond that many deviations a normal value is not met.
constexpr double kFar = 12;
constexpr int kPieces = 400;  // of Simpson's rule, between two kinks

double density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }
double below(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

// Of the largest of `count`.
double density_of_maximum(double z, double count) {
  return count * density(z) * std::pow(below(z), count - 1);
}

template <typename Function>
double simpson(Function f, double from, double to) {
  const double h = (to - from) / kPieces;
  double sum = f(from) + f(to);
  for (int i = 1; i < kPieces; ++i) {
    sum += f(from + i * h) * (i % 2 == 0 ? 2 : 4);
  }
  return sum * h / 3;
}

// max_k(a_k m + S_k).
struct Line {
  double slope;
  double offset;
};
std::vector<Line> lines_of(const Computation& computation, std::span<const double> c) {
  require(computation.shares.size() == c.size() && !c.empty(),
          "{} shares of the backward pass for {} exchanges", computation.shares.size(), c.size());
  std::vector<Line> lines(c.size());
  double passed = computation.forward;
  double left = 0;
  for (std::size_t k = 0; k < c.size(); ++k) {
    passed += (1 - computation.forward) * computation.shares[k];
    lines[k].slope = passed;
    left += c[c.size() - 1 - k];
    lines[c.size() - 1 - k].offset = left;
  }
  return lines;
}
double highest(const std::vector<Line>& lines, double m) {
  double most = lines.front().slope * m + lines.front().offset;
  for (const Line& line : lines) {
    most = std::max(most, line.slope * m + line.offset);
  }
  return most;
}

double sum_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum;
}

}  // namespace

double expected_maximum(std::uint32_t count) {
  require(count >= 1, "the largest of none");
  double sum = 0;
  for (double z = -kFar; z < kFar; z += 1) {
    sum += simpson([&](double at) { return at * density_of_maximum(at, count); }, z, z + 1);
  }
  return sum;
}

double all_reduce_step(std::uint32_t workers, const Computation& computation,
                       std::span<const double> c, double update) {
  require(workers >= 1, "all-reduce of no workers");
  const std::vector<Line> lines = lines_of(computation, c);
  if (computation.variance == 0) {
    return update + highest(lines, computation.mean);
  }
  const double deviation = std::sqrt(computation.variance);
  // Simpson's rule from kink to kink, where two lines cross.
  std::vector<double> kinks;
  for (double z = -kFar; z <= kFar; z += 1) {
    kinks.push_back(z);
  }
  for (std::size_t k = 0; k < lines.size(); ++k) {
    for (std::size_t l = 0; l < k; ++l) {
      const double slope = lines[k].slope - lines[l].slope;
      const double z = ((lines[l].offset - lines[k].offset) / slope - computation.mean) / deviation;
      if (slope > 0 && std::abs(z) < kFar) {
        kinks.push_back(z);
      }
    }
  }
  std::sort(kinks.begin(), kinks.end());
  const auto integrand = [&](double z) {
    return highest(lines, computation.mean + deviation * z) * density_of_maximum(z, workers);
  };
  double sum = update;
  for (std::size_t i = 1; i < kinks.size(); ++i) {
    sum += simpson(integrand, kinks[i - 1], kinks[i]);
  }
  return sum;
}

Bounds all_reduce_bounds(double slowest, const Computation& computation, std::span<const double> c,
                         double update) {
  const std::vector<Line> lines = lines_of(computation, c);
  const double all = sum_of(c);
  return {.low = update + std::max(slowest + c.back(), lines.front().slope * slowest + all),
          .high = update + slowest + all};
}

double behind_step(double compute, std::span<const double> c, std::span<const double> u) {
  require(c.size() == u.size() && !c.empty(), "{} exchanges and {} updates", c.size(), u.size());
  double most = std::max(compute + sum_of(u), sum_of(c));
  for (std::size_t k = 0; k < c.size(); ++k) {
    most = std::max(most, u[k] + c[k]);
  }
  return most;
}

double behind_step_of_phases(double compute, std::span<const double> costs, double update) {
  require(!costs.empty(), "no phases");
  double sum = 0;
  for (const double cost : costs) {
    sum += std::max(compute, cost);
  }
  return update + sum / static_cast<double>(costs.size());
}

double behind_bound(double compute, double update, double engine) {
  return std::max(compute + update, engine);
}

double overlap_gain(double compute, double exchange, double update) {
  return (compute + exchange + update) / (std::max(compute, exchange) + update);
}

}  // namespace starling::model
