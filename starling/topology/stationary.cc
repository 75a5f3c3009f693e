#include "starling/topology/stationary.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace starling::topology {
namespace {

// The covariance of all workers' values, dense. The common part, which grows with every step, is
// taken off when asked: only deviations have a limit.
class Covariance {
 public:
  explicit Covariance(std::uint32_t workers)
      : workers_(workers), at_(std::size_t{workers} * workers, 0.0) {}

  // C <- W (C + I) Wᵀ; returns the mean squared deviation from the mean.
  double step(const Mixing& mixing) {
    for (std::size_t i = 0; i < workers_; ++i) {
      at_[i * workers_ + i] += 1;
    }
    mixing.apply(at_, workers_);
    double trace = 0;
    double all = 0;
    for (std::size_t i = 0; i < workers_; ++i) {
      const auto row = std::span(at_).subspan(i * workers_, workers_);
      mixing.apply(row, 1);
      trace += row[i];
      all += std::accumulate(row.begin(), row.end(), 0.0);
    }
    return std::max(0.0, trace - all / workers_) / workers_;
  }

 private:
  std::uint32_t workers_;
  std::vector<double> at_;
};

// The limit of a sequence of period values: either it stands still, or its increments fall
// geometrically and the tail is added.
class Limit {
 public:
  void push(double value) {
    const double increment = value - last_;
    const double ratio = increment_ != 0 ? increment / increment_ : 0;
    increment_ = increment;
    last_ = value;
    const double guess = ratio > 0 && ratio < 1 ? value + increment * ratio / (1 - ratio) : value;
    const bool agrees = std::abs(guess - guess_) <= 1e-11 * std::max(guess, 1e-9);
    agreed_ = agrees ? agreed_ + 1 : 0;
    guess_ = guess;
  }
  bool settled() const {
    return agreed_ >= 2 || std::abs(increment_) <= 1e-13 * std::max(last_, 1e-9);
  }
  double last() const { return last_; }
  double value() const { return guess_; }

 private:
  double last_ = 0;
  double increment_ = 0;
  double guess_ = -1;
  int agreed_ = 0;
};

}  // namespace

std::optional<std::vector<double>> stationary_deviation(std::span<const Mixing> period,
                                                        const Spectrum& spectrum) {
  const std::uint32_t n = period.front().workers();
  const double most = std::max(100.0, 2e8 / n / n);
  // Squares fall by factor² per period; with the tail added, three digits of decay are the least.
  const double factor = spectrum.factor.value_or(0);
  const double periods = factor > 0 ? std::log(1e-3) / (2 * std::log(factor)) : 0;
  if (std::max(periods, 2.0) * static_cast<double>(period.size()) > most) {
    return std::nullopt;
  }
  Covariance covariance(n);
  std::vector<Limit> limits(period.size());
  for (double steps = 0; steps < most; steps += static_cast<double>(period.size())) {
    for (std::size_t s = 0; s < period.size(); ++s) {
      limits[s].push(covariance.step(period[s]));
    }
    // What a period makes exact forgets everything older: the second period is the limit.
    const bool forgot = spectrum.norm == 0 && steps > 0;
    if (forgot ||
        std::all_of(limits.begin(), limits.end(), [](const Limit& l) { return l.settled(); })) {
      std::vector<double> values;
      std::transform(limits.begin(), limits.end(), std::back_inserter(values),
                     [&](const Limit& l) { return forgot ? l.last() : l.value(); });
      return values;
    }
  }
  return std::nullopt;
}

}  // namespace starling::topology
