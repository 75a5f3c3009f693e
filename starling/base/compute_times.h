// How long steps compute, for whoever sleeps, simulates or predicts them: the same on all workers
// and in every run with the same seed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "starling/base/random.h"
#include "starling/base/step_times.h"
#include "starling/base/time.h"
#include "starling/base/units.h"

namespace starling {

// Of one step of one worker.
struct ComputeTime {
  Duration forward{0};
  Duration backward{0};
};

class ComputeTimes {
 public:
  // Without a word on it, this much of a step is the forward pass.
  static constexpr double kForward = 1.0 / 3;

  // `text`, seconds as decimal numbers:
  //   FORWARD:BACKWARD     always the same, such as 0.010:0.020
  //   FORWARD:BACKWARD:CV  both times the same draw from a log-normal distribution of mean 1 and
  //                        this coefficient of variation
  //   constant:S           whole steps, of which `forward` is the forward pass
  //   normal:MEAN,VARIANCE in seconds and seconds²; never below a hundredth of the mean
  //   lognormal:MEAN,VARIANCE
  //   draw:NAME:MEAN       like those of a published workload (base/step_times.h)
  // Throws Error{Input}, one line.
  ComputeTimes(std::string_view text, std::uint64_t seed, double forward = kForward);

  // Steps that were measured, of one worker after the other: each step of worker r is one of the
  // steps of worker r (modulo as many as were measured), drawn at random; what belongs to one step
  // stays together. Workers whose means differ by no more than chance are taken to be alike, and
  // draw from all steps: a few dozen each would otherwise make one of them slow for ever. Throws
  // Error{Input} if there are none, or one is negative.
  ComputeTimes(std::vector<std::vector<ComputeTime>> by_worker, std::uint64_t seed);
  // Those of everyone.
  ComputeTimes(std::span<const ComputeTime> steps, std::uint64_t seed);
  // Whole steps.
  ComputeTimes(std::span<const double> seconds, std::uint64_t seed, double forward = kForward);

  ComputeTime at(Rank worker, Step step) const;
  double mean() const { return mean_; }  // seconds

 private:
  struct Constant {
    double seconds;
  };
  struct Normal {
    double mean;
    double deviation;
  };
  struct LogNormal {
    double mean;
    double deviation;  // of the logarithm
  };
  using Measured = std::vector<std::vector<ComputeTime>>;

  ComputeTime split(double seconds) const;

  std::variant<Constant, Normal, LogNormal, ScaledTimes, Measured> kind_;
  std::uint64_t seed_;
  double forward_ = kForward;
  double mean_ = 0;
};

}  // namespace starling
