#include "starling/topology/spectrum.h"

#include <algorithm>
#include <cmath>

#include "starling/topology/lanczos.h"

namespace starling::topology {
namespace {

// Element updates that a whole spectrum may cost: a second or so.
constexpr double kBudget = 4e8;

// ‖((I − J) M)^power‖₂, from the largest eigenvalue of the transposed times the matrix.
double norm_of_power(std::span<const Mixing> period, std::size_t power, double& budget) {
  const std::size_t n = period.front().workers();
  const auto apply = [&](std::span<double> x) {
    for (std::size_t k = 0; k < power; ++k) {
      for (const Mixing& step : period) {
        step.apply(x, 1);
      }
      remove_mean(x, 1);
    }
    for (std::size_t k = 0; k < power; ++k) {
      remove_mean(x, 1);
      for (std::size_t s = period.size(); s-- > 0;) {
        period[s].apply_transposed(x, 1);
      }
    }
    remove_mean(x, 1);
    budget -= 2.0 * static_cast<double>(power * period.size() * n);
  };
  const double cost = 2.0 * static_cast<double>(power * period.size() * n);
  const auto most = static_cast<std::size_t>(std::clamp(budget / cost, 16.0, 8000.0));
  return std::sqrt(largest_eigenvalue(n, apply, most));
}

}  // namespace

// Gelfand: ‖M^k‖^(1/k) falls towards the spectral radius; the ratio of two powers gets there much
// sooner, at once for normal matrices and for two alternating projections.
Spectrum spectrum(std::span<const Mixing> period) {
  double budget = kBudget;
  Spectrum result{norm_of_power(period, 1, budget), std::nullopt};
  double norm = result.norm;
  double last = 0;
  double change = 1;
  for (std::size_t power = 1; power <= 32 && budget > 0 && norm > 1e-60; power *= 2) {
    const double squared = norm_of_power(period, 2 * power, budget);
    const double factor = std::pow(squared / norm, 1.0 / static_cast<double>(power));
    change = std::abs(factor - last) / factor;
    last = factor;
    norm = squared;
    if (change < 1e-9) {
      break;
    }
  }
  if (change < 1e-2) {
    result.factor = last;
  }
  return result;
}

}  // namespace starling::topology
