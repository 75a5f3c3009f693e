// starling plan --profile as a user sees it: what it says of a profile that is there.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/model/profile_case.h"
#include "tests/tool/tool.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class PlanOfProfile : public testing::Test {
 protected:
  ~PlanOfProfile() override { fs::remove(file_); }

  std::string asked(const model::Profile& profile, const std::string& words = "") {
    model::write_profile(profile, file_);
    const Output result = run(fmt::format("plan --profile '{}' {}", file_.string(), words));
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }

  fs::path file_ = fs::path(testing::TempDir()) / fmt::format("plan-{}.json", getpid());
};

TEST_F(PlanOfProfile, AllReduceIsSaidPlainly) {
  const std::string text = asked(model::make_profile(0.0005));
  EXPECT_TRUE(has(text, "\nall-reduce is the better choice here:\n  --algorithm all-reduce "))
      << text;
  EXPECT_FALSE(has(text, "times as fast as all-reduce:")) << text;
  const std::string other = asked(model::make_profile(0.1));
  EXPECT_TRUE(has(other, "\ntake dadam, ")) << other;
  EXPECT_TRUE(has(other, " times as fast as all-reduce:\n  --algorithm dadam ")) << other;
}

// The same keys as of `starling simulate`, with the same meaning.
TEST_F(PlanOfProfile, JsonIsThatOfSimulate) {
  const json plan = json::parse(asked(model::make_profile(0.05, 0.1), "--json"));
  EXPECT_EQ(plan.at("what_if"), false);
  for (const json& choice : plan.at("choices")) {
    const double step = choice.at("step_seconds");
    EXPECT_LE(choice.at("step_seconds_interval").at(0).get<double>(), step);
    EXPECT_GE(choice.at("step_seconds_interval").at(1).get<double>(), step);
    ASSERT_TRUE(choice.at("age_histogram").is_object());
    std::uint64_t all = 0;
    for (const auto& [age, count] : choice.at("age_histogram").items()) {
      all += count.get<std::uint64_t>();
    }
    if (choice.at("algorithm") == "wagma") {
      // A tenth of the rounds are syncs, of which none is stale.
      const double late =
          1 - choice.at("age_histogram").at("0").get<double>() / static_cast<double>(all);
      EXPECT_NEAR(choice.at("stale_fraction").get<double>(), late / 0.9, 1e-9);
      EXPECT_GT(late, 0);
    }
  }
}

TEST_F(PlanOfProfile, WhatItHasIsNoWhatIf) {
  const model::Profile profile = model::make_profile(0.05, 0.1);
  const std::string same = "--workers 8 --per-node 2 --bandwidth 125M --latency 0.0001 --json";
  EXPECT_EQ(asked(profile, same), asked(profile, "--json"));
  EXPECT_EQ(json::parse(asked(profile, "--bandwidth 126M --json")).at("what_if"), true);
}

TEST_F(PlanOfProfile, WhatIsMissingIsNamed) {
  model::Profile profile = model::make_profile(0.1);
  std::erase_if(profile.exchanges, [](const model::ExchangePhase& phase) {
    return phase.pattern.schedule == "ring" && phase.phase == 1;
  });
  model::write_profile(profile, file_);
  expect_refused(
      "plan --profile " + file_.string(),
      {file_.string() + ":42: exchanges: those of schedule 'ring' have 1 phases, not 2"});
}

// Before anything is measured.
TEST_F(PlanOfProfile, FilesThatCannotBeWrittenAreRefusedFirst) {
  const std::string step = "plan -n 2 --parameters 1000 --step-seconds 0.01 ";
  expect_refused(step + "--out /nowhere/p.json", {"--out /nowhere/p.json", "no folder /nowhere"});
  expect_refused(step + "--out " + testing::TempDir(), {"--out", "this is a folder"});
  expect_refused(step + "--out ''", {"--out: no file is named"});
  expect_refused(step + "--verify 10 --plot /nowhere/p.svg",
                 {"--plot /nowhere/p.svg", "no folder /nowhere"});
  model::write_profile(model::make_profile(0.1), file_);
  expect_refused(fmt::format("plan --profile '{}' --plot /nowhere/p.svg", file_.string()),
                 {"--plot /nowhere/p.svg", "no folder /nowhere"});
}

}  // namespace
}  // namespace starling::tool
