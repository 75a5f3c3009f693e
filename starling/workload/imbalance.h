// Load imbalance on purpose, the same on all workers and in every run with the same seed: workers
// that sleep, and computation that is slept instead of done.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "starling/base/random.h"
#include "starling/base/step_times.h"
#include "starling/base/time.h"
#include "starling/base/units.h"

namespace starling::workload {

// Times like those of a published workload, with another mean.
struct ScaledTimes {
  StepTimes times;
  double factor = 1;
  Duration at(const Random& random, Step step) const;
};

// How long a worker sleeps before it computes a step.
class Delay {
 public:
  // `text`, seconds as decimal numbers:
  //   ""             nobody
  //   COUNTxSECONDS  in each step COUNT distinct workers, drawn anew
  //   rank:R:SECONDS worker R in every step
  //   ramp:SECONDS   worker r for r · SECONDS
  //   rotating:A:B   from A to B seconds by rank; the next step everyone has its neighbour's place
  //   draw:NAME:MEAN a time like those of a published workload (base/step_times.h), scaled
  // Throws Error{Input}, one line, naming the text and what is wrong.
  Delay(std::string_view text, std::uint32_t workers, std::uint64_t seed);

  Duration delay(Rank worker, Step step) const;

 private:
  struct Nobody {};
  struct Drawn {
    std::uint32_t count;
    Duration time;
  };
  struct One {
    Rank worker;
    Duration time;
  };
  struct Ramp {
    Duration time;
  };
  struct Rotating {
    Duration from;
    Duration to;
  };

  std::variant<Nobody, Drawn, One, Ramp, Rotating, ScaledTimes> kind_;
  std::uint32_t workers_;
  std::uint64_t seed_;
};

// What a step takes that is slept.
struct Emulated {
  Duration forward{0};
  Duration backward{0};
};

class EmulatedCompute {
 public:
  // "FORWARD:BACKWARD" in seconds, such as 0.010:0.020; with a third number, the coefficient of
  // variation of a whole step, both are multiplied by the same draw from a log-normal distribution
  // of mean 1. Or "draw:NAME:MEAN": a published workload's time, a third of it forward. Throws
  // Error{Input}, one line.
  EmulatedCompute(std::string_view text, std::uint64_t seed);

  Emulated at(Rank worker, Step step) const;

 private:
  double forward_ = 0;  // seconds
  double backward_ = 0;
  double deviation_ = 0;  // of the logarithm
  std::optional<ScaledTimes> times_;
  std::uint64_t seed_;
};

}  // namespace starling::workload
