#include "tests/comm/view_plan.h"

#include <algorithm>

#include "starling/base/random.h"

namespace starling::test {
namespace {

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : draw_(Random(seed).stream(7)) { plan_.seed = seed; }

  ViewPlan plan() {
    const std::uint64_t kind = draw_.below(10);
    if (kind >= 8) {
      return storm();
    }
    shape();
    if (kind != 7) {
      faults();
    }
    if (kind < 2) {
      deaths();
    }
    if (kind % 3 == 0) {
      mutes();
    }
    if (kind >= 4) {
      leavers();
    }
    if (kind == 2 || kind == 6) {
      doubts();
    }
    if (kind == 3 && draw_.below(2) == 0) {
      cut();
    }
    return plan_;
  }

  ViewPlan storm() {
    shape();
    const Rank first = anyone();
    plan_.network.ports.latency = 1e-6;
    plan_.network.jitter = 5e-5;
    plan_.network.detection = 1e-4 * draw_.uniform();
    plan_.faults.push_back({up_to(events_), anyone(), sim::FaultKind::Die});
    doubt(first, anyone(), {.cue = Cue::Install, .nth = 1, .delay = soon() / 6});
    doubt(anyone(), first, {.cue = Cue::Freeze, .nth = 1, .delay = soon() / 2});
    if (draw_.below(2) == 0) {
      plan_.deaths.push_back({first, {.cue = Cue::Install, .nth = 1, .delay = soon() / 4}});
    }
    return plan_;
  }

 private:
  Rank anyone() { return {static_cast<std::uint32_t>(draw_.below(plan_.workers()))}; }
  std::uint64_t up_to(std::uint64_t most) { return draw_.below(most + 1); }
  double moment() { return duration_ * draw_.uniform(); }
  Moment in_a_change() {
    return {.cue = draw_.below(2) == 0 ? Cue::Freeze : Cue::Install,
            .nth = static_cast<int>(1 + draw_.below(2)),
            .delay = draw_.below(2) == 0 ? 0 : soon()};
  }
  double soon() { return 3 * hop_ * draw_.uniform(); }

  void shape() {
    constexpr std::uint32_t kWorkers[] = {2, 3, 4, 4, 5, 5, 5, 8, 8, 5, 4, 8};
    const std::uint32_t workers = draw_.below(40) == 0 ? 16 : kWorkers[draw_.below(12)];
    sim::NetworkOptions& network = plan_.network;
    network.seed = plan_.seed;
    network.ports.workers = workers;
    network.ports.per_node = 1 + draw_.below(3);
    network.ports.latency = 1e-6 * static_cast<double>(1 + draw_.below(20));
    network.jitter = draw_.below(4) == 0 ? 0 : 5e-5 * draw_.uniform();
    hop_ = network.ports.latency + network.jitter;
    constexpr double kHops[] = {0, 0.5, 2, 5, 30};
    network.detection = hop_ * kHops[draw_.below(5)];
    plan_.group = 1 + static_cast<std::uint32_t>(draw_.below(std::min(workers, 4u)));
    plan_.tau = 1 + static_cast<std::uint32_t>(draw_.below(5));
    plan_.versions = 4 + draw_.below(9);
    plan_.pace = draw_.below(3) == 0 ? 0 : hop_ * 4 * draw_.uniform();
    plan_.all_leave = draw_.below(3) == 0;
    duration_ = static_cast<double>(plan_.versions) * (plan_.pace + 1.5 * hop_);
    const std::uint64_t each = plan_.group + 2 * workers / plan_.tau;
    events_ = plan_.versions * workers * each;
  }

  // Of which some close to each other, so that one falls into the change for the other.
  void faults() {
    const std::uint64_t most = draw_.below(4) == 0 ? plan_.workers() : (plan_.workers() + 1) / 2;
    std::uint64_t at = up_to(events_);
    for (std::uint64_t n = up_to(most); n > 0; --n) {
      const bool dies = draw_.below(5) != 0;
      plan_.faults.push_back({at, anyone(), dies ? sim::FaultKind::Die : sim::FaultKind::Stop,
                              40 * hop_ * draw_.uniform()});
      at = draw_.below(4) == 0 ? up_to(events_) : at + up_to(8ull * plan_.workers());
    }
  }

  // In the middle of a change, or just after it.
  void deaths() {
    for (std::uint64_t n = 1 + draw_.below(3); n > 0; --n) {
      plan_.deaths.push_back({anyone(), in_a_change()});
    }
  }

  void mutes() {
    for (std::uint64_t n = 1 + draw_.below(2); n > 0; --n) {
      plan_.muted.push_back({anyone(), up_to(3ull * plan_.workers())});
    }
  }

  void leavers() {
    std::set<Rank> who;
    for (std::uint64_t n = 1 + draw_.below((plan_.workers() + 1) / 2); n > 0; --n) {
      Leaver leaver{.worker = anyone(), .at = up_to(plan_.versions), .hesitates = 0, .dies = {}};
      leaver.hesitates = draw_.below(2) == 0 ? 0 : soon();
      if (draw_.below(3) == 0) {
        leaver.dies = soon();
      }
      if (who.insert(leaver.worker).second) {
        plan_.leavers.push_back(leaver);
      }
    }
  }

  void doubts() {
    for (std::uint64_t n = 1 + draw_.below(2); n > 0; --n) {
      const Moment when = draw_.below(3) == 0 ? Moment{.delay = moment()} : in_a_change();
      doubt(anyone(), anyone(), when);
    }
  }

  void doubt(Rank worker, Rank whom, const Moment& when) {
    if (worker != whom) {
      plan_.doubts.push_back({worker, whom, when});
    }
  }

  void cut() {
    Cut cut{.side = {}, .at = moment(), .until = 0};
    cut.until = cut.at + 4 * soon();
    for (std::uint32_t r = 0; r < plan_.workers(); ++r) {
      if (draw_.below(2) == 0) {
        cut.side.insert({r});
      }
    }
    plan_.cut = cut;
  }

  RandomSequence draw_;
  ViewPlan plan_;
  double hop_ = 0;
  double duration_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace

ViewPlan draw_plan(std::uint64_t seed) { return Drawing(seed).plan(); }

ViewPlan draw_storm(std::uint64_t seed) { return Drawing(seed).storm(); }

}  // namespace starling::test
