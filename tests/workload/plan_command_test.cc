// starling plan as a user sees it: measured here for real, then asked again.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tool/tool.h"
#include "tests/workload/temporary.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using workload::TemporaryFolder;

TEST(PlanCommand, MeasuresPredictsSimulatesAndTrains) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "p.json").string();
  const Output measured = run(fmt::format(
      "plan -n 4 --parameters 300000 --compute normal:0.01,0.000001 --steps 10 --bucket-bytes 300K "
      "--verify 20 --top 2 --out '{}' --json",
      file));
  ASSERT_EQ(measured.code, 0) << measured.err;
  const json plan = json::parse(measured.out);
  EXPECT_EQ(plan.at("workers"), 4);
  EXPECT_EQ(plan.at("parameters"), 300'000);
  // Sleeps are never shorter; how much longer is the machine's.
  EXPECT_GT(plan.at("compute_seconds").get<double>(), 0.009);
  EXPECT_LT(plan.at("compute_seconds").get<double>(), 0.5);
  ASSERT_GE(plan.at("choices").size(), 10U);
  for (const json& choice : plan.at("choices")) {
    EXPECT_GT(choice.at("step_seconds").get<double>(), 0.005) << choice;
    EXPECT_LT(choice.at("step_seconds").get<double>(), 0.5) << choice;
  }
  ASSERT_EQ(plan.at("verified").size(), 3U);
  for (const json& row : plan.at("verified")) {
    for (const char* kind : {"measured_seconds", "model_seconds", "simulated_seconds"}) {
      EXPECT_GT(row.at(kind).get<double>(), 0.005) << row;
      EXPECT_LT(row.at(kind).get<double>(), 0.5) << row;
    }
  }

  // Asked again it says the same; what if there were more of them, on a slow network?
  const Output again = run(fmt::format("plan --profile '{}' --bucket-bytes 300K --json", file));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out), plan);
  const Output what_if =
      run(fmt::format("plan --profile '{}' --workers 64 --per-node 4 --bandwidth 1M --json", file));
  ASSERT_EQ(what_if.code, 0) << what_if.err;
  const json slow = json::parse(what_if.out);
  EXPECT_EQ(slow.at("workers"), 64);
  EXPECT_NE(slow.at("recommended"), "all-reduce");
  EXPECT_FALSE(slow.contains("verified"));

  // A run says what the profile makes of it, before its first step; whatever was left open.
  for (const char* words : {"", "--algorithm wagma", "--algorithm local-sgd",
                            "--algorithm dadam --schedule ring --no-overlap"}) {
    const std::string out = (folder.path() / fmt::format("run-{}", std::string(words).size()));
    const Output trained =
        run(fmt::format("train images -n 4 --model flat:300000 --emulate-compute constant:0.01 "
                        "--steps 12 --profile '{}' --out '{}' --json {}",
                        file, out, words));
    ASSERT_EQ(trained.code, 0) << trained.err;
    const json summary = json::parse(trained.out);
    EXPECT_GT(summary.at("predicted_step_seconds").get<double>(), 0.009) << words;
    EXPECT_LT(summary.at("predicted_step_seconds").get<double>(), 0.5) << words;
    EXPECT_EQ(summary.at("predicted_from"), file);
  }
  expect_refused(fmt::format("train images -n 2 --profile '{}'", file),
                 {"measured with 4 workers, not 2"});
  const Output other = run(fmt::format("train images -n 4 --steps 2 --profile '{}' --out '{}'",
                                       file, (folder.path() / "other").string()));
  EXPECT_NE(other.code, 0);
  EXPECT_TRUE(has(other.err, "model of 1200000 bytes, not")) << other.err;

  const Output text = run(fmt::format("plan --profile '{}'", file));
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "take ")) << text.out;
  EXPECT_TRUE(has(text.out, "--algorithm ")) << text.out;
}

// Every row, with words on when rounds start, has a prediction from the run's own steps, or none.
TEST(PlanCommand, EveryRunIsPredictedFromItsOwnSteps) {
  const TemporaryFolder folder;
  int number = 0;
  for (const char* words :
       {"--algorithm local-sgd", "--algorithm wagma --trigger first+0.001",
        "--algorithm wagma --averaging beside", "--algorithm starling --trigger all",
        "--algorithm starling --age-bound 2", "--algorithm eager-majority --trigger quorum:2"}) {
    const Output trained = run(fmt::format(
        "train images -n 2 --model flat:1000 --emulate-compute constant:0.005 --steps 12 "
        "--out '{}' --json {}",
        (folder.path() / std::to_string(++number)).string(), words));
    ASSERT_EQ(trained.code, 0) << words << trained.err;
    const json summary = json::parse(trained.out);
    EXPECT_GT(summary.at("predicted_step_seconds").get<double>(), 0.004) << words;
  }
  const Output none = run(
      fmt::format("train images -n 2 --model flat:1000 --emulate-compute constant:0.005 --steps 12 "
                  "--out '{}' --json --algorithm starling --trigger first",
                  (folder.path() / "none").string()));
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_TRUE(json::parse(none.out).at("predicted_step_seconds").is_null());
}

TEST(PlanCommand, RefusesInOneLine) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "p.json").string();
  expect_refused("plan --profile " + file, {file, "cannot be read"});
  std::ofstream(file) << "{\"format\": 1,\n\"workers\": \"two\"}";
  expect_refused("plan --profile " + file, {file + ":2: workers", "\"two\""});
  std::ofstream(file) << "{\"format\": 7}";
  expect_refused("plan --profile " + file, {file + ":1: format", "measure again"});
  expect_refused("plan -n 1", {"one worker", "nothing to decide"});
  expect_refused("plan --parameters 1000", {"--step-seconds"});
  expect_refused("plan --parameters 1000 --step-seconds 0.1 --compute constant:1", {"twice"});
  expect_refused("plan --bandwidth 1M", {"--profile"});
  expect_refused("plan --profile ''", {"no file is named"});
  expect_refused("plan --plot x.svg", {"--verify"});
  expect_refused("plan --verify 20 --profile " + file, {"--profile", "--verify"});
  expect_refused("plan -n 2 --model mpl --out " + file, {"'mpl'", "'mlp'"});
  expect_refused("plan --proflie x", {"'--proflie'", "'--profile'"});
}

}  // namespace
}  // namespace starling::tool
