// Rows in which the engine holds the model. h_i^k is the time at which worker i has handed over k
// updates (h^0 = 0), e_i^v the end of version v at its engine; version v can hold updates 0 … v −
// 1:
//   h_i^{t+1} = max(h_i^t + T_i^t, e_i^t) + U       (AD-PSGD does not wait: h_i^t + T_i^t + U)
//   s_g^v = max(f, min(max over g of h_j^v, min over g of n_j)),   e_g^v = s_g^v + c(g)
//   f     = max over g of max(e_j^{v-1}, h_j^{v-A})   engines are free, nobody is older than A
//   n_j   = h_j^v + max(0, min(T_j^v, step_j − 1.5 c'))   j waits, or will in less than an exchange
// step_j and c' are what workers expect, from what they have seen: blends of 4/5 old and 1/5 new.
//   one side arrived: s = max(engines are free, min over g of h_j^v); all arrived: the max instead
// Without overlap a worker waits for version t + 1 before it computes step t + 1.
//
// AD-PSGD never waits; a step has ended when the update and the round of its number have: what is
// left to the engines when they are slower has to be done before the run ends.
#include <algorithm>
#include <limits>

#include "starling/model/contributions.h"
#include "starling/model/recurrence.h"
#include "starling/model/rows.h"

namespace starling::model {
namespace {

using topology::Trigger;

// As comm/trigger_need.cc has them.
constexpr double kMemory = 0.8;
constexpr double kMargin = 1.5;

// What a worker expects a repeated thing to take.
class Expectation {
 public:
  void see(double now) {
    value_ = seen_ ? kMemory * value_ + (1 - kMemory) * now : now;
    seen_ = true;
  }
  double value() const { return value_; }

 private:
  double value_ = 0;
  bool seen_ = false;
};

class Held {
 public:
  explicit Held(const Walk& walk)
      : walk_(walk),
        setting_(walk.setting),
        trigger_(trigger_of(setting_)),
        waits_(setting_.algorithm->one_step_behind),
        bound_(std::min(setting_.age_bound, walk.steps() + 1)),
        x_(setting_.workers, 0),
        handed_(x_),
        arrived_(x_),
        there_(x_),
        history_(setting_.workers * static_cast<std::size_t>(bound_ + 1), 0),
        next_(setting_.workers),
        step_(setting_.workers),
        exchange_(setting_.workers),
        contributions_(setting_.workers, Contributions(1)) {
    for (std::uint32_t i = 0; i < setting_.workers; ++i) {
      next_[i] = setting_.times(Rank{i}, Step{0});
    }
  }

  void run() {
    for (std::int64_t t = 0; t < walk_.steps(); ++t) {
      for (std::uint32_t i = 0; i < setting_.workers; ++i) {
        hand_in(i, t);
        if (t + 1 < walk_.steps()) {
          next_[i] = setting_.times(Rank{i}, Step{t + 1});
        }
      }
      exchange(t + 1);
      for (std::uint32_t i = 0; i < setting_.workers; ++i) {
        x_[i] = handed_[i];
        if (waits_ && !setting_.overlap) {
          walk_.observed.wait(Rank{i}, t, 0, handed_[i], arrived_[i], there_[i]);
          x_[i] = std::max(handed_[i], there_[i]);
        }
        walk_.observed.ended(waits_ ? x_[i] : std::max(x_[i], there_[i]));
      }
      walk_.observed.end_step();
    }
  }

 private:
  // h_i^k, of the last bound_ + 1 values of k.
  double& history(std::size_t i, std::int64_t k) {
    return history_[i * static_cast<std::size_t>(bound_ + 1) +
                    static_cast<std::size_t>(k % (bound_ + 1))];
  }

  void hand_in(std::uint32_t i, std::int64_t t) {
    double clock = walk_.observed.compute(Rank{i}, t, next_[i], x_[i]);
    if (waits_) {
      walk_.observed.wait(Rank{i}, t, 0, clock, arrived_[i], there_[i]);
      clock = std::max(clock, there_[i]);
    }
    const double end = clock + walk_.update();
    walk_.observed.update(Rank{i}, t, 0, clock, end);
    step_[i].see(end - handed_[i]);
    handed_[i] = history(i, t + 1) = end;
    contributions_[i].hand_over(end);
  }

  // When member j wants version v to have been started.
  double needed_by(Rank j, double exchange) const {
    const double until_wait = setting_.overlap ? next_[j.index()].whole() : 0;
    const double until_need = step_[j.index()].value() - kMargin * exchange;
    return handed_[j.index()] + std::max(0.0, std::min(until_wait, until_need));
  }

  void exchange(std::int64_t version) {
    const Round& round = walk_.rounds.at(version);
    std::vector<double> next = there_;
    for (std::size_t g = 0; g < round.exchanges().size(); ++g) {
      const PlannedExchange& exchange = round.exchanges()[g];
      const Start start = start_of(exchange, version);
      const double end = start.when + round.seconds_of_all(g);
      for (const Rank j : exchange.takers) {
        arrived_[j.index()] = start.arrived;
        next[j.index()] = end;
        exchange_[j.index()].see(end - start.when);
        walk_.observed.exchange(j, version - 1, 0, start.when, end);
        walk_.observed.contribution(version - 1,
                                    version - contributions_[j.index()].newest(start.when));
      }
    }
    there_ = next;
  }

  struct Start {
    double arrived;  // the last that had to be waited for
    double when;
  };
  Start start_of(const PlannedExchange& exchange, std::int64_t version) {
    double first = std::numeric_limits<double>::infinity();
    double last = 0;
    double free = 0;
    double oldest = 0;
    double expected = 0;
    for (const Rank j : exchange.needs) {
      first = std::min(first, handed_[j.index()]);
      last = std::max(last, handed_[j.index()]);
      free = std::max(free, there_[j.index()]);
      if (version > setting_.age_bound) {
        oldest = std::max(oldest, history(j.index(), version - bound_));
      }
      expected = std::max(expected, exchange_[j.index()].value());
    }
    if (walk_.rounds.is_sync(version) || trigger_ == Trigger::AllArrived) {
      return {last, std::max(free, last)};
    }
    if (trigger_ == Trigger::OneSideArrived) {
      return {first, std::max(free, first)};
    }
    double needed = last;
    for (const Rank j : exchange.needs) {
      needed = std::min(needed, needed_by(j, expected));
    }
    return {oldest, std::max({free, oldest, needed})};
  }

  const Walk& walk_;
  const Setting& setting_;
  Trigger trigger_;
  bool waits_;
  std::int64_t bound_;           // A
  std::vector<double> x_;        // when the next step begins
  std::vector<double> handed_;   // h^v
  std::vector<double> arrived_;  // the last that version v waited for
  std::vector<double> there_;    // e^{v-1}, then e^v
  std::vector<double> history_;
  std::vector<StepTime> next_;
  std::vector<Expectation> step_;
  std::vector<Expectation> exchange_;
  std::vector<Contributions> contributions_;
};

}  // namespace

void walk_held(const Walk& walk) { Held(walk).run(); }

}  // namespace starling::model
