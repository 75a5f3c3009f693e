// Steps that hand over a whole model or gradient, and pick up a whole result: what rows that wait
// in person and rows that an arrival starts have in common. When rounds begin and end is theirs to
// say
// (`arrived`, `there`).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "starling/model/recurrence.h"
#include "starling/model/rows.h"

namespace starling::model {

struct WholeSteps {
  explicit WholeSteps(const Walk& of)
      : walk(of),
        place(place_of(of.setting)),
        x(of.setting.workers, 0),
        computed(x),
        handed(x),
        arrived(x),
        there(x) {}

  // Worker `i` computes step `t`. `averages`: what it makes goes into a round.
  void hand_over(std::uint32_t i, std::int64_t t, bool averages = true) {
    const Setting& setting = walk.setting;
    handed[i] = x[i];
    computed[i] = walk.observed.compute(Rank{i}, t, setting.times(Rank{i}, Step{t}), x[i]);
    if (place == Place::AfterUpdate || !averages) {
      computed[i] = update(i, t, computed[i]);
    }
    if (place != Place::BesideComputation) {
      handed[i] = computed[i];
    }
  }

  // It goes on with what is there.
  void pick_up(std::uint32_t i, std::int64_t t, bool averages = true) {
    x[i] = computed[i];
    if (averages) {
      walk.observed.wait(Rank{i}, t, 0, computed[i], arrived[i], there[i]);
      x[i] = std::max(computed[i], there[i]);
      x[i] = place == Place::AfterUpdate ? x[i] : update(i, t, x[i]);
    }
    walk.observed.ended(x[i]);
  }

  const Walk& walk;
  Place place;
  std::vector<double> x;         // the end of a step
  std::vector<double> computed;  // and of its computation
  std::vector<double> handed;    // a
  std::vector<double> arrived;   // the last who was waited for
  std::vector<double> there;     // e

 private:
  double update(std::uint32_t i, std::int64_t t, double start) const {
    const double end = start + walk.update();
    walk.observed.update(Rank{i}, t, 0, start, end);
    return end;
  }
};

}  // namespace starling::model
