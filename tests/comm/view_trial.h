// One trial of views from a seed, and what must hold at its end:
//   (a) two workers that are in each other's view of an epoch have the same view and first version
//       of it; all who stay to the end have the same in every epoch
//   (b) a round that ended holds the group of its view; two that ended it with each other agree
//   (c) a sync that ended for one who stays, or left, ended for all of them, with the same members
//   (d) versions end in order, each once
//   (e) nobody hangs: everyone dies, leaves, fails or ends the last version, and soon
//   (f) no view holds less than half of the one before, or half without its lowest rank
//   (g) nobody fails without need: only the dead are lost where nobody is taken for it
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/comm/view_plan.h"
#include "tests/comm/view_worker.h"

namespace starling::test {

// What came up; for tests that want to be sure that it did.
struct ViewCounts {
  std::uint64_t installs = 0;
  std::uint64_t voids = 0;
  std::uint64_t commits = 0;   // of a sync, by an install
  std::uint64_t failures = 0;  // on the smaller side
  std::uint64_t excluded = 0;
  std::uint64_t left = 0;
  std::uint64_t stayed = 0;   // to the end
  std::uint64_t strayed = 0;  // installed a view of its own before it was lost
};

struct ViewResult {
  std::vector<std::string> violations;
  std::vector<std::string> story;  // how it went, if asked for
};

ViewResult try_views(const ViewPlan& plan, Flaw flaw, ViewCounts& counts, bool tell = false);

}  // namespace starling::test
