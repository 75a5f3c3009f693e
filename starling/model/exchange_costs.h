// What exchanges cost. The recurrences know no network: they ask how long each exchange of a step
// takes, when all of them are under way at once.
#pragma once

#include <cstddef>
#include <span>

#include "starling/base/units.h"

namespace starling::model {

// Those who take part in one exchange. In a closed one all members give to and take from each
// other; otherwise the first takes from the rest.
struct Exchange {
  std::span<const Rank> members{};
  bool closed = true;
};

// Immutable; safe to use from any thread.
class ExchangeCosts {
 public:
  virtual ~ExchangeCosts() = default;
  // Fills `out[i]` with the seconds that `active[i]` takes for bucket `bucket` at step `step`; all
  // of `active` are under way at once. Of a schedule with a period, steps that are a period apart
  // must cost the same. What everybody together costs is asked as one exchange of all, at step 0.
  virtual void seconds(std::size_t bucket, Step step, std::span<const Exchange> active,
                       std::span<double> out) const = 0;
};

}  // namespace starling::model
