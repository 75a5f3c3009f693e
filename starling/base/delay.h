// Load imbalance on purpose, the same on all workers and in every run with the same seed.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "starling/base/step_times.h"
#include "starling/base/time.h"
#include "starling/base/units.h"

namespace starling {

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

}  // namespace starling
