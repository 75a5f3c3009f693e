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
}

// Whether a trial with this flaw goes wrong.
bool is_found(Flaw flaw, ViewPlan (*draw)(std::uint64_t), std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    ViewCounts counts;
    if (!try_views(draw(seed), flaw, counts).violations.empty()) {
      return true;
    }
  }
  return false;
}

TEST(ViewSchedules, WithoutTheClosingBarrierSurvivorsDisagree) {
  EXPECT_TRUE(is_found(Flaw::NoClosingBarrier, draw_plan, 1000));
}

TEST(ViewSchedules, IfTheLostAreHeardSurvivorsDisagree) {
  EXPECT_TRUE(is_found(Flaw::LostAreHeard, draw_storm, 5000));
}

TEST(ViewSchedules, IfVersionsEndWhileFrozenSurvivorsDisagree) {
  EXPECT_TRUE(is_found(Flaw::EndsWhileFrozen, draw_plan, 1000));
}

TEST(ViewSchedules, IfLeaversDoNotCountTheyDisagreeWithTheRest) {
  EXPECT_TRUE(is_found(Flaw::LeaversDoNotCount, draw_plan, 1000));
}

}  // namespace
}  // namespace starling::test
