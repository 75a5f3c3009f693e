// One step behind. The compute stream of worker i is F, B_1, U_1, B_2, U_2, …, B_b, U_b; U_k^t
// needs the exchange of bucket k that was handed over by update t − 1 (t = 0: all start equal):
//   sF_i^t = eU_{i,b}^{t-1}
//   eU_{i,k}^t = max(eB_{i,k}^t, eC_k^{t-1}[i]) + u_k
// and for every exchange g of version t + 1, in order of k:
//   sC_{g,k}^t = max over j in g of max(eU_{j,k}^t, E_j),   eC_{g,k}^t = sC_{g,k}^t + c_k(g)
//   E_j := eC_{g,k}^t
// Engines per group: E belongs to the group instead of the worker.
// Not streamed: B_1 … B_b, then U_1 … U_b; all is handed over at the end.
// Without overlap (adapt, then combine): nothing is waited for at U_k^t, but sF^{t+1} >= eC_b^t.
#include <algorithm>

#include "starling/model/recurrence.h"

namespace starling::model {
namespace {

class Behind {
 public:
  explicit Behind(const Walk& walk)
      : walk_(walk),
        setting_(walk.setting),
        shares_(shares_of(setting_)),
        x_(setting_.workers, 0),
        updated_(setting_.workers * setting_.buckets),
        arrived_(updated_.size(), 0),
        there_(updated_.size(), 0),
        free_(setting_.workers, 0) {}

  void run() {
    for (std::int64_t t = 0; t < walk_.steps(); ++t) {
      for (std::uint32_t i = 0; i < setting_.workers; ++i) {
        setting_.streamed ? stream(i, t) : compute_then_update(i, t);
      }
      exchange(t);
      for (std::uint32_t i = 0; i < setting_.workers; ++i) {
        if (!setting_.overlap) {
          const std::size_t last = at(i, setting_.buckets - 1);
          walk_.observed.wait(Rank{i}, t, setting_.buckets - 1, x_[i], arrived_[last],
                              there_[last]);
          x_[i] = std::max(x_[i], there_[last]);
        }
        walk_.observed.contribution(t, 0);
        walk_.observed.ended(x_[i]);
      }
      walk_.observed.end_step();
    }
  }

 private:
  std::size_t at(std::uint32_t worker, std::size_t bucket) const {
    return worker * setting_.buckets + bucket;
  }

  // max(eB, eC) of bucket k, if it is waited for.
  double wait(std::uint32_t i, std::int64_t t, std::size_t k, double computed) {
    if (!setting_.overlap) {
      return computed;
    }
    walk_.observed.wait(Rank{i}, t, k, computed, arrived_[at(i, k)], there_[at(i, k)]);
    return std::max(computed, there_[at(i, k)]);
  }
  double update(std::uint32_t i, std::int64_t t, std::size_t k, double start) {
    const double end = start + walk_.update(k);
    walk_.observed.update(Rank{i}, t, k, start, end);
    return end;
  }

  void stream(std::uint32_t i, std::int64_t t) {
    const StepTime time = setting_.times(Rank{i}, Step{t});
    double clock = walk_.observed.forward(Rank{i}, t, time, x_[i]);
    for (std::size_t k = 0; k < setting_.buckets; ++k) {
      const double computed = clock + shares_[k] * time.backward;
      walk_.observed.backward(Rank{i}, t, k, clock, computed);
      clock = updated_[at(i, k)] = update(i, t, k, wait(i, t, k, computed));
    }
    x_[i] = clock;
  }

  void compute_then_update(std::uint32_t i, std::int64_t t) {
    const StepTime time = setting_.times(Rank{i}, Step{t});
    double clock = walk_.observed.compute(Rank{i}, t, time, x_[i]);
    clock = wait(i, t, setting_.buckets - 1, clock);
    for (std::size_t k = 0; k < setting_.buckets; ++k) {
      clock = update(i, t, k, clock);
    }
    std::fill_n(updated_.begin() + static_cast<std::ptrdiff_t>(at(i, 0)), setting_.buckets, clock);
    x_[i] = clock;
  }

  // What update t has handed over.
  void exchange(std::int64_t t) {
    const Round& round = walk_.rounds.at(t + 1);
    const bool per_group = setting_.engines == Engines::OnePerGroup;
    if (per_group) {
      free_.resize(std::max(free_.size(), walk_.rounds.engines()), 0);
    }
    std::vector<double> next = free_;
    for (std::size_t k = 0; k < setting_.buckets; ++k) {
      for (std::size_t g = 0; g < round.exchanges().size(); ++g) {
        const PlannedExchange& exchange = round.exchanges()[g];
        double arrived = 0;
        double start = 0;
        for (const Rank j : exchange.needs) {
          arrived = std::max(arrived, updated_[at(j.value, k)]);
          start = std::max(start, free_[per_group ? exchange.engine : j.index()]);
        }
        start = std::max(start, arrived);
        const double end = start + round.seconds(k, g);
        for (const Rank j : exchange.takers) {
          next[per_group ? exchange.engine : j.index()] = end;
          arrived_[at(j.value, k)] = arrived;
          there_[at(j.value, k)] = end;
          walk_.observed.exchange(j, t, k, start, end);
        }
      }
      free_ = next;
    }
  }

  const Walk& walk_;
  const Setting& setting_;
  std::vector<double> shares_;
  std::vector<double> x_;        // eU_{i,b}
  std::vector<double> updated_;  // eU_{i,k}
  std::vector<double> arrived_;  // max over g of eU_{j,k}, of the exchange that i takes from
  std::vector<double> there_;    // eC_k[i]
  std::vector<double> free_;     // E
};

}  // namespace

void walk_behind(const Walk& walk) { Behind(walk).run(); }

}  // namespace starling::model
