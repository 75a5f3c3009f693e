// What a collective tells about itself: when it ran on this worker and whom it waited for.
#pragma once

#include <vector>

#include "starling/base/time.h"
#include "starling/base/units.h"

namespace starling::comm {

struct Wait {
  Rank peer;
  Duration time{0};
};

struct Report {
  Time started{};
  Time finished{};
  std::vector<Wait> waits;  // only peers that were waited for, in rank order
};

}  // namespace starling::comm
