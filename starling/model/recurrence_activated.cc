// Rounds that somebody's arrival starts. With a_i the time at which worker i hands over what
// version t is to hold, and e_i the end of version t − 1 at its engine:
//   A     = min_i a_i + grace                    (first arrived: anybody starts all groups)
//           a of a drawn worker, or the K-th smallest a   (drawn initiator, quorum)
//           min over the group of a_j            (one side arrived)
//           max_i a_i                            (every tau-th step, everybody)
//   s_g   = max(A, max over j in g of e_j)       e_g = s_g + c(g)
//   x_i'  = max(a_i, e_g)                        plus U, if gradients were averaged
// With a grace, a group that is complete does not wait for its end. Who arrives after s_g is late:
// its newest earlier contribution counts, and it waits only for e_g. Beside the computation
// (AverageWhileUpdating): a_i = x_i, x_i' = max(x_i + T_i, e_g) + U.
#include <algorithm>
#include <limits>

#include "starling/base/random.h"
#include "starling/model/contributions.h"
#include "starling/model/whole_steps.h"

namespace starling::model {
namespace {

using topology::Trigger;

class Activated {
 public:
  explicit Activated(const Walk& walk)
      : walk_(walk),
        setting_(walk.setting),
        trigger_(trigger_of(setting_)),
        draws_(Random(setting_.seed).stream(0x1217)),
        steps_(walk),
        contributions_(setting_.workers, Contributions(0)) {}

  void run() {
    for (std::int64_t t = 0; t < walk_.steps(); ++t) {
      for (std::uint32_t i = 0; i < setting_.workers; ++i) {
        steps_.hand_over(i, t);
        contributions_[i].hand_over(steps_.handed[i]);
      }
      exchange(t);
      for (std::uint32_t i = 0; i < setting_.workers; ++i) {
        steps_.pick_up(i, t);
      }
      walk_.observed.end_step();
    }
  }

 private:
  // When everybody is told to start; infinity: groups start by themselves.
  double activation(std::int64_t t) {
    if (walk_.rounds.is_sync(t)) {
      return *std::max_element(steps_.handed.begin(), steps_.handed.end());
    }
    switch (trigger_) {
      case Trigger::FirstArrived:
        return *std::min_element(steps_.handed.begin(), steps_.handed.end()) + setting_.grace +
               setting_.activation;
      case Trigger::DrawnInitiator:
        return setting_.activation + (setting_.quorum ? arrival(*setting_.quorum) : drawn(t));
      default:
        return std::numeric_limits<double>::infinity();
    }
  }
  double drawn(std::int64_t t) const {
    return steps_.handed[draws_.below(setting_.workers, static_cast<std::uint64_t>(t))];
  }
  double arrival(std::uint32_t number) {
    sorted_ = steps_.handed;
    const auto place = sorted_.begin() + (std::min(number, setting_.workers) - 1);
    std::nth_element(sorted_.begin(), place, sorted_.end());
    return *place;
  }

  void exchange(std::int64_t t) {
    const Round& round = walk_.rounds.at(t);
    const bool sync = walk_.rounds.is_sync(t);
    const double all = activation(t);
    std::vector<double> next = steps_.there;
    for (std::size_t g = 0; g < round.exchanges().size(); ++g) {
      const PlannedExchange& exchange = round.exchanges()[g];
      double first = std::numeric_limits<double>::infinity();
      double last = 0;
      double free = 0;
      for (const Rank j : exchange.needs) {
        first = std::min(first, steps_.handed[j.index()]);
        last = std::max(last, steps_.handed[j.index()]);
        free = std::max(free, steps_.there[j.index()]);
      }
      double activated = all;
      if (!sync && trigger_ == Trigger::OneSideArrived) {
        activated = first;
      } else if (!sync && setting_.grace > 0) {
        activated = std::min(all, last);
      }
      const double start = std::max(activated, free);
      const double end = start + round.seconds_of_all(g);
      for (const Rank j : exchange.takers) {
        steps_.arrived[j.index()] = activated;
        next[j.index()] = end;
        walk_.observed.exchange(j, t, 0, start, end);
        walk_.observed.contribution(t, t - contributions_[j.index()].newest(start));
      }
    }
    steps_.there = next;
  }

  const Walk& walk_;
  const Setting& setting_;
  Trigger trigger_;
  Random draws_;
  WholeSteps steps_;
  std::vector<double> sorted_;
  std::vector<Contributions> contributions_;
};

}  // namespace

void walk_activated(const Walk& walk) { Activated(walk).run(); }

}  // namespace starling::model
