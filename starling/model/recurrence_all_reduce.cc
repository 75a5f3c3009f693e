// All-reduce. C_k^t needs B_k^t of all workers and C_{k-1}^t; the update needs the last of them:
//   sF_i^t = eU_i^{t-1}
//   sC_k^t = max(max_i eB_{i,k}^t, eC_{k-1}^t),   eC_k^t = sC_k^t + c_k
//   eU_i^t = max(eC_b^t, eB_{i,b}^t) + U
// Not streamed: every C_k waits for the whole backward pass.
#include <algorithm>
#include <limits>

#include "starling/model/recurrence.h"

namespace starling::model {

void walk_all_reduce(const Walk& walk) {
  const Setting& setting = walk.setting;
  const std::size_t buckets = setting.buckets;
  const std::vector<double> shares = shares_of(setting);
  const Round& everybody = walk.rounds.everybody();
  std::vector<double> x(setting.workers, 0);      // eU_i
  std::vector<double> computed(setting.workers);  // eB_{i,b}
  std::vector<double> ready(buckets);             // max_i eB_{i,k}
  std::vector<double> start(buckets);
  std::vector<double> end(buckets);
  for (std::int64_t t = 0; t < walk.steps(); ++t) {
    std::fill(ready.begin(), ready.end(), 0);
    for (std::uint32_t i = 0; i < setting.workers; ++i) {
      const StepTime time = setting.times(Rank{i}, Step{t});
      double clock = walk.observed.forward(Rank{i}, t, time, x[i]);
      for (std::size_t k = 0; k < buckets; ++k) {
        const double begin = clock;
        clock += shares[k] * time.backward;
        walk.observed.backward(Rank{i}, t, k, begin, clock);
        ready[k] = std::max(ready[k], clock);
      }
      computed[i] = clock;
    }
    double free = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < buckets; ++k) {
      start[k] = std::max(setting.streamed ? ready[k] : ready.back(), free);
      free = end[k] = start[k] + everybody.seconds(k, 0);
    }
    for (std::uint32_t i = 0; i < setting.workers; ++i) {
      for (std::size_t k = 0; k < buckets; ++k) {
        walk.observed.exchange(Rank{i}, t, k, start[k], end[k]);
      }
      walk.observed.wait(Rank{i}, t, buckets - 1, computed[i], ready.back(), end.back());
      const double begin = std::max(end.back(), computed[i]);
      x[i] = begin + walk.update();
      walk.observed.update(Rank{i}, t, 0, begin, x[i]);
      walk.observed.contribution(t, 0);
      walk.observed.ended(x[i]);
    }
    walk.observed.end_step();
  }
}

}  // namespace starling::model
