// Rounds in which everyone needed is waited for, the whole model at once. With N(i) those whose
// part worker i's exchange needs, itself included, and c the sum over buckets:
//   after    a_i = x_i + T_i + U;  x_i' = max over j in N(i) of a_j + c
//   beside   x_i' = max(x_i + T_i, max over j in N(i) of x_j + c) + U
// Engines are always free: nobody begins a step before its last exchange has ended. Local SGD
// averages at every H-th step only; in between x_i' = x_i + T_i + U. Gradients are handed over
// before the update: a_i = x_i + T_i, x_i' = max over j of a_j + c + U.
#include <algorithm>

#include "starling/model/whole_steps.h"

namespace starling::model {
namespace {

class InPerson {
 public:
  explicit InPerson(const Walk& walk)
      : walk_(walk),
        setting_(walk.setting),
        local_(setting_.algorithm->cadence == topology::Cadence::EveryPeriod),
        steps_(walk) {}

  void run() {
    for (std::int64_t t = 0; t < walk_.steps(); ++t) {
      const bool averages = !local_ || walk_.rounds.is_sync(t);
      for (std::uint32_t i = 0; i < setting_.workers; ++i) {
        steps_.hand_over(i, t, averages);
      }
      if (averages) {
        exchange(t);
      }
      for (std::uint32_t i = 0; i < setting_.workers; ++i) {
        steps_.pick_up(i, t, averages);
      }
      walk_.observed.end_step();
    }
  }

 private:
  void exchange(std::int64_t t) {
    const Round& round = walk_.rounds.at(t);
    for (std::size_t g = 0; g < round.exchanges().size(); ++g) {
      const PlannedExchange& exchange = round.exchanges()[g];
      double start = 0;
      for (const Rank j : exchange.needs) {
        start = std::max(start, steps_.handed[j.index()]);
      }
      const double end = start + round.seconds_of_all(g);
      for (const Rank j : exchange.takers) {
        steps_.arrived[j.index()] = start;
        steps_.there[j.index()] = end;
        walk_.observed.exchange(j, t, 0, start, end);
        walk_.observed.contribution(t, 0);
      }
    }
  }

  const Walk& walk_;
  const Setting& setting_;
  bool local_;
  WholeSteps steps_;
};

}  // namespace

void walk_in_person(const Walk& walk) { InPerson(walk).run(); }

}  // namespace starling::model
