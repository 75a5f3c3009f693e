#include "starling/topology/symbol.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <map>
#include <numbers>

namespace starling::topology {
namespace {

using Complex = std::complex<double>;
using Terms = std::vector<Mixing::Term>;

constexpr std::size_t kMostTerms = 16;

// A 2 × 2 block; 1 × 1 blocks leave the rest 0.
struct Block {
  std::array<std::array<Complex, 2>, 2> at{};

  friend Block operator*(const Block& a, const Block& b) {
    Block c;
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        c.at[i][j] = a.at[i][0] * b.at[0][j] + a.at[i][1] * b.at[1][j];
      }
    }
    return c;
  }
  friend Block operator+(Block a, const Block& b) {
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        a.at[i][j] += b.at[i][j];
      }
    }
    return a;
  }
  Block adjoint() const {
    return {
        {{{std::conj(at[0][0]), std::conj(at[1][0])}, {std::conj(at[0][1]), std::conj(at[1][1])}}}};
  }
  Complex trace() const { return at[0][0] + at[1][1]; }
  Complex determinant() const { return at[0][0] * at[1][1] - at[0][1] * at[1][0]; }
  double radius() const {
    const Complex half = trace() / 2.0;
    const Complex root = std::sqrt(half * half - determinant());
    return std::max(std::abs(half + root), std::abs(half - root));
  }
  double norm() const { return std::sqrt((adjoint() * *this).radius()); }
};

// Rows by worker, as terms; nothing if a row is too long.
std::vector<Terms> rows_of(const Mixing& step) {
  std::vector<Terms> rows(step.workers());
  for (const auto& single : step.singles()) {
    rows[single.worker] = single.terms;
  }
  for (const auto& group : step.groups()) {
    if (group.members.size() > kMostTerms) {
      return {};
    }
    for (const std::uint32_t worker : group.members) {
      for (const std::uint32_t from : group.members) {
        rows[worker].push_back({from, from == worker ? group.self_weight : group.other_weight});
      }
    }
  }
  return rows;
}

std::map<std::uint32_t, double> shifted(const Terms& terms, std::uint32_t by, std::uint32_t n) {
  std::map<std::uint32_t, double> row;
  for (const auto& term : terms) {
    row[(term.from + by) % n] += term.weight;
  }
  return row;
}

bool is_invariant(const std::vector<Terms>& rows, std::uint32_t shift) {
  const auto n = static_cast<std::uint32_t>(rows.size());
  for (std::uint32_t i = 0; i < n; ++i) {
    if (rows[i].size() > kMostTerms ||
        shifted(rows[i], shift, n) != shifted(rows[(i + shift) % n], 0, n)) {
      return false;
    }
  }
  return n % shift == 0;
}

// The block of one step at angle θ: sum over m of W(a, b + g·m) e^(iθm).
Block block_of(const std::vector<Terms>& rows, std::uint32_t shift, double angle) {
  Block block;
  for (std::uint32_t a = 0; a < shift; ++a) {
    for (const auto& term : rows[a]) {
      const std::uint32_t blocks = term.from / shift;
      block.at[a][term.from % shift] += std::polar(term.weight, angle * blocks);
    }
  }
  return block;
}

// What one frequency adds. The zero-mean part of frequency 0 is what is orthogonal to (1, 1).
class Frequency {
 public:
  Frequency(const std::vector<std::vector<Terms>>& steps, std::uint32_t shift, double angle) {
    for (const auto& rows : steps) {
      steps_.push_back(block_of(rows, shift, angle));
      if (angle == 0) {
        steps_.back() = zero_mean(shift) * steps_.back() * zero_mean(shift);
      }
    }
    noise_ = angle == 0 ? zero_mean(shift) : one(shift);
    period_ = one(shift);
    for (const Block& step : steps_) {
      period_ = step * period_;
    }
  }

  double norm() const { return period_.norm(); }
  double factor() const { return period_.radius(); }

  // Adds the trace of the covariance after each step. Requires: factor() < 1.
  void add_covariance(std::vector<double>& after) const {
    // C <- W (C + E) Wᵀ over a period is C <- M C Mᵀ + D; the fixed point by doubling.
    Block covariance;
    for (const Block& step : steps_) {
      covariance = step * (covariance + noise_) * step.adjoint();
    }
    Block power = period_;
    for (int i = 0; i < 64 && power.norm() > 1e-200; ++i) {
      covariance = covariance + power * covariance * power.adjoint();
      power = power * power;
    }
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      covariance = steps_[s] * (covariance + noise_) * steps_[s].adjoint();
      after[s] += covariance.trace().real();
    }
  }

 private:
  static Block one(std::uint32_t shift) {
    Block block;
    block.at[0][0] = 1;
    block.at[1][1] = shift == 2 ? 1 : 0;
    return block;
  }
  static Block zero_mean(std::uint32_t shift) {
    Block block;
    if (shift == 2) {
      block.at = {{{0.5, -0.5}, {-0.5, 0.5}}};
    }
    return block;
  }

  std::vector<Block> steps_;
  Block noise_;
  Block period_;
};

}  // namespace

std::uint32_t shift_invariance(std::span<const Mixing> period) {
  for (const std::uint32_t shift : {1u, 2u}) {
    if (std::all_of(period.begin(), period.end(), [&](const Mixing& step) {
          const auto rows = rows_of(step);
          return !rows.empty() && is_invariant(rows, shift);
        })) {
      return shift;
    }
  }
  return 0;
}

std::optional<SymbolAnalysis> analyse_symbol(std::span<const Mixing> period, std::uint32_t shift) {
  std::vector<std::vector<Terms>> steps;
  for (const Mixing& step : period) {
    steps.push_back(rows_of(step));
  }
  const std::uint32_t n = period.front().workers();
  SymbolAnalysis result{{0, 0.0}, std::vector<double>(period.size(), 0.0)};
  for (std::uint32_t k = 0; k < n / shift; ++k) {
    const Frequency frequency(steps, shift, 2 * std::numbers::pi * k * shift / n);
    result.spectrum.norm = std::max(result.spectrum.norm, frequency.norm());
    result.spectrum.factor = std::max(*result.spectrum.factor, frequency.factor());
    if (*result.spectrum.factor > 1 - 1e-12) {
      return std::nullopt;
    }
    frequency.add_covariance(result.stationary);
  }
  for (double& value : result.stationary) {
    value /= n;
  }
  return result;
}

}  // namespace starling::topology
