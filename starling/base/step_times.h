// How long steps of real workloads took, as the papers show it: distributions to draw from, for
// imbalance that is like theirs.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/random.h"
#include "starling/base/time.h"
#include "starling/base/units.h"

namespace starling {

class StepTimes {
 public:
  // A piece of a histogram: `weight` (any unit) spread evenly over [low, high] seconds.
  struct Bin {
    double low = 0;
    double high = 0;
    double weight = 0;
  };
  explicit StepTimes(std::span<const Bin> bins);

  // By name. Throws Error{Input} with the nearest known one.
  //   translation  Transformer on WMT17, one P100                  0.07 to 0.71 s, mean 0.293
  //   navigation   collecting experience in Habitat, one P100      1.7 to 43.5 s, mean 2.10
  //   video        LSTM on UCF101                                  0.2 to 3.4 s, mean 1.235
  //   sentences    Transformer on WMT16, batches of 64             0.18 to 3.5 s, mean 0.475
  //   cloud        ResNet-50 on two V100 of Google Cloud           0.4 to 1.9 s, mean 0.454
  // Of the last three only range, mean and deviation are known: a beta distribution that has them.
  static StepTimes published(std::string_view name);
  static std::span<const std::string_view> names();

  // The time below which a part `share` of all steps lies. Requires: 0 <= share <= 1.
  double quantile(double share) const;
  double draw(const Random& random, std::uint64_t index) const {
    return quantile(random.uniform(index));
  }
  double mean() const { return mean_; }
  double deviation() const { return deviation_; }

 private:
  std::vector<Bin> bins_;
  std::vector<double> shares_;  // of all bins up to the end of each
  double mean_ = 0;
  double deviation_ = 0;
};

// Times like those of a published workload, with another mean.
class ScaledTimes {
 public:
  // Whether `text` is of this kind: "draw:NAME:MEAN".
  static bool names(std::string_view text) { return text.starts_with("draw:"); }
  // Throws Error{Input} that names `what` and the text.
  static ScaledTimes parse(std::string_view what, std::string_view text);

  Duration at(const Random& random, Step step) const;

 private:
  ScaledTimes(StepTimes times, double factor) : times_(std::move(times)), factor_(factor) {}

  StepTimes times_;
  double factor_;
};

}  // namespace starling
