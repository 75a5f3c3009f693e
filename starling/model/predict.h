// The runtime model: how long a step takes, and where the time goes. Every row of the table of
// algorithms has its recurrence, exact for the event graph that docs/runtime-model.md describes;
// random times are drawn, not averaged. O(workers · buckets) per step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "starling/model/setting.h"

namespace starling::model {

// Per step, mean over workers.
struct Waiting {
  double straggler = 0;  // until the last who is waited for has arrived
  double exchange = 0;   // from then on until the result is there
};

struct Prediction {
  double step = 0;  // mean time of a step
  // Half of its 95 % interval; none of fewer than 20 steps.
  std::optional<double> interval = std::nullopt;
  Waiting waiting{};
  double update = 0;    // per step
  double exchange = 0;  // under way per step and worker
  // The part of it that nobody waits for; 1 if there is none.
  double overlap = 1;
  // Of the contributions to rounds that are no syncs, those that were not of the round's own step.
  double stale = 0;
  // By how many steps, syncs included: ages[a] contributions were a steps old; the last counts
  // older ones as well.
  std::vector<std::uint64_t> ages{};
};

// The first tenth of the steps does not count. Throws Error{Input} if the setting lacks or
// contradicts something.
Prediction predict(const Setting& setting);

}  // namespace starling::model
