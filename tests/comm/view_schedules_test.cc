// Views under seeded schedules of deaths, stops, farewells, false suspicions and cuts, on the
// virtual network. STARLING_SCHEDULES sets how many. And that the trial has teeth: with any one of
// the rules broken it finds a violation.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/comm/view_plan.h"
#include "tests/comm/view_trial.h"

namespace starling::test {
namespace {

std::uint64_t schedules() {
  const char* text = std::getenv("STARLING_SCHEDULES");
  return text == nullptr ? 1000 : std::stoull(text);
}

std::string text_of(const ViewResult& result) {
  std::string text;
  for (const auto* lines : {&result.violations, &result.story}) {
    for (const std::string& line : *lines) {
      text += line + "\n";
    }
  }
  return text;
}

TEST(ViewSchedules, SurvivorsAgreeAndGoOn) {
  ViewCounts counts;
  for (std::uint64_t seed = 0; seed < schedules(); ++seed) {
    const ViewPlan plan = draw_plan(seed);
    if (!try_views(plan, Flaw::None, counts).violations.empty()) {
      ViewCounts again;
      FAIL() << "seed " << seed << "\n" << text_of(try_views(plan, Flaw::None, again, true));
    }
  }
  RecordProperty("installs", static_cast<int>(counts.installs));
  if (schedules() >= 1000) {
    EXPECT_GT(counts.installs, 2000);
    EXPECT_GT(counts.voids, 500);
    EXPECT_GT(counts.commits, 20);
    EXPECT_GT(counts.failures, 50);
    EXPECT_GT(counts.excluded, 50);
    EXPECT_GT(counts.left, 500);
    EXPECT_GT(counts.stayed, 1000);
    EXPECT_GT(counts.strayed, 5);
  }
  std::printf("installs %lu voids %lu commits %lu failures %lu excluded %lu left %lu stayed %lu strayed %lu\n", counts.installs, counts.voids, counts.commits, counts.failures, counts.excluded, counts.left, counts.stayed, counts.strayed);
}

// The first seed at which a trial with this flaw goes wrong.
std::optional<std::uint64_t> found_at(Flaw flaw, std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    ViewCounts counts;
    const ViewResult r = try_views(draw_plan(seed), flaw, counts);
    if (!r.violations.empty()) {
      std::printf("%lu %s\n", seed, r.violations.front().c_str());
      return seed;
    }
  }
  return std::nullopt;
}

TEST(ViewSchedules, WithoutTheClosingBarrierSurvivorsDisagree) {
  EXPECT_TRUE(found_at(Flaw::NoClosingBarrier, 5000));
}
TEST(ViewSchedules, IfTheLostAreHeardSurvivorsDisagree) {
  EXPECT_TRUE(found_at(Flaw::LostAreHeard, 100000));
}
TEST(ViewSchedules, IfVersionsEndWhileFrozenSurvivorsDisagree) {
  EXPECT_TRUE(found_at(Flaw::EndsWhileFrozen, 5000));
}
TEST(ViewSchedules, IfLeaversDoNotCountTheyDisagreeWithTheRest) {
  EXPECT_TRUE(found_at(Flaw::LeaversDoNotCount, 5000));
}
}  // namespace
}  // namespace starling::test
