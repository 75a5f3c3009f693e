// What happens in one trial of views: how many workers, what network, and who dies, stops, leaves
// or is taken for lost, and when. A pure function of its seed.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "starling/base/units.h"
#include "starling/comm/view.h"
#include "starling/sim/network.h"

namespace starling::test {

// Dies in the middle of its announcements: after so many messages about views.
struct Muted {
  Rank worker;
  std::uint64_t after = 0;
};

// Finishes early: some time after `at` has begun or been reached.
struct Leaver {
  Rank worker;
  comm::Version at = 0;
  double hesitates = 0;
  std::optional<double> dies;  // so long after its farewell
};

// When: `delay` after the start, or after this worker has frozen or installed for the nth time.
enum class Cue : std::uint8_t { Start, Freeze, Install };
struct Moment {
  Cue cue = Cue::Start;
  int nth = 0;
  double delay = 0;
};

struct Death {
  Rank worker;
  Moment when;
};

// `worker` takes `whom` for lost, who lives.
struct Doubt {
  Rank worker;
  Rank whom;
  Moment when;
};

// From then on nothing passes between the two sides, and each finds out before `until`.
struct Cut {
  std::set<Rank> side;
  double at = 0;
  double until = 0;
};

struct ViewPlan {
  std::uint64_t seed = 0;
  sim::NetworkOptions network;
  std::uint32_t group = 1;
  std::uint32_t tau = 1;
  comm::Version versions = 0;
  double pace = 0;  // a worker takes up to this before each version
  bool all_leave = false;
  std::vector<sim::Fault> faults;
  std::vector<Death> deaths;
  std::vector<Muted> muted;
  std::vector<Leaver> leavers;
  std::vector<Doubt> doubts;
  std::optional<Cut> cut;

  std::uint32_t workers() const { return static_cast<std::uint32_t>(network.ports.workers); }
  bool is_sync(comm::Version version) const { return (version + 1) % tau == 0; }
  // Whether only the dead are ever lost.
  bool honest() const { return doubts.empty() && !cut; }
};

ViewPlan draw_plan(std::uint64_t seed);
// One kind of them alone: two changes in one. While all agree that one is lost, one who has
// installed that already takes another for lost, and is itself taken for it by one who has not.
ViewPlan draw_storm(std::uint64_t seed);

}  // namespace starling::test
