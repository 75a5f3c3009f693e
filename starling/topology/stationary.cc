#include "starling/topology/stationary.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace starling::topology {
namespace {

// The covariance of all workers' deviations, dense; only the zero-mean part is kept.
class Covariance {
 public:
  explicit Covariance(std::uint32_t workers)
      : workers_(workers), at_(std::size_t{workers} * workers, 0.0) {}

  // C <- W (C + I − J) Wᵀ.
  void step(const Mixing& mixing) {
    const double share = 1.0 / workers_;
    for (double& value : at_) {
      value -= share;
    }
    for (std::size_t i = 0; i < workers_; ++i) {
      at_[i * workers_ + i] += 1;
    }
    mixing.apply(at_, workers_);
    for (std::size_t i = 0; i < workers_; ++i) {
      mixing.apply(std::span(at_).subspan(i * workers_, workers_), 1);
    }
  }

  // Mean squared deviation. Schedules that move the mean leave some of it in C: taken off.
  double per_worker() const {
    double trace = 0;
    double all = 0;
    for (std::size_t i = 0; i < workers_; ++i) {
      trace += at_[i * workers_ + i];
    }
    for (const double value : at_) {
      all += value;
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
    const bool agrees = std::abs(guess - guess_) <= 1e-12 * std::max(guess, 1e-12);
    agreed_ = agrees ? agreed_ + 1 : 0;
    guess_ = guess;
  }
  bool settled() const { return agreed_ >= 3; }
  double value() const { return guess_; }

 private:
  double last_ = 0;
  double increment_ = 0;
  double guess_ = -1;
  int agreed_ = 0;
};

}  // namespace

std::optional<std::vector<double>> stationary_deviation(std::span<const Mixing> period) {
  const std::uint32_t n = period.front().workers();
  const double most = std::max(100.0, 2e8 / n / n);
  Covariance covariance(n);
  std::vector<Limit> limits(period.size());
  for (double steps = 0; steps < most; steps += static_cast<double>(period.size())) {
    for (std::size_t s = 0; s < period.size(); ++s) {
      covariance.step(period[s]);
      limits[s].push(covariance.per_worker());
    }
    if (std::all_of(limits.begin(), limits.end(), [](const Limit& l) { return l.settled(); })) {
      std::vector<double> values;
      std::transform(limits.begin(), limits.end(), std::back_inserter(values),
                     [](const Limit& l) { return l.value(); });
      return values;
    }
  }
  return std::nullopt;
}

}  // namespace starling::topology
