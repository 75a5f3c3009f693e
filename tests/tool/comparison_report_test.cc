// What is made of runs: pairs, times to a loss, runs that are missing.
#include "starling/tool/comparison_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/tool/comparison_table.h"
#include "tests/tool/tool.h"

namespace starling::tool {
namespace {

using nlohmann::json;

json evaluation(int step, double seconds, double accuracy, const json& loss) {
  return {{"step", step},
          {"train_seconds", seconds},
          {"test_accuracy", accuracy},
          {"test_loss", loss},
          {"consensus_relative", 0.01}};
}

// Of 100 steps in 10 s, evaluated at half and in the end.
json summary(int seed, double accuracy, double loss) {
  return {{"seed", seed},
          {"steps", 100},
          {"test_accuracy", accuracy},
          {"test_loss", loss},
          {"train_seconds", 10.0},
          {"samples_per_second", 640.0},
          {"waited_seconds", 2.5},
          {"stale_fraction", 0.25},
          {"consensus_relative", 0.01},
          {"lost", json::array()},
          {"evaluations",
           {evaluation(50, 5, accuracy / 2, loss + 1), evaluation(100, 10, accuracy, loss)}}};
}

MeasuredRun run_with(int seed, double accuracy, double loss) {
  return measured_run(summary(seed, accuracy, loss));
}

TEST(MeasuredRun, IsReadFromTheSummary) {
  const MeasuredRun run = run_with(3, 0.8, 0.5);
  EXPECT_EQ(run.seed, 3u);
  EXPECT_DOUBLE_EQ(run.step_seconds, 0.1);
  EXPECT_DOUBLE_EQ(run.waiting, 0.25);
  EXPECT_EQ(run.evaluations.size(), 2u);
  json blind = summary(3, 0.8, 0.5);
  blind["test_accuracy"] = nullptr;
  EXPECT_THROW(measured_run(blind), Error);
}

// Its steps have no time: they are in no curve.
TEST(MeasuredRun, LeavesOutTheWarmUp) {
  json warm = summary(3, 0.8, 0.5);
  warm["warm_up_steps"] = 50;
  const MeasuredRun run = measured_run(warm);
  EXPECT_DOUBLE_EQ(run.step_seconds, 0.2);
  ASSERT_EQ(run.evaluations.size(), 1u);
  EXPECT_DOUBLE_EQ(run.evaluations[0].step, 100);
}

TEST(TimeToLoss, LiesOnTheLineBetweenEvaluations) {
  const MeasuredRun run = run_with(0, 0.8, 0.5);  // 1.5 at 5 s, 0.5 at 10 s
  EXPECT_DOUBLE_EQ(time_to_loss(run, 1.0).value(), 7.5);
  EXPECT_DOUBLE_EQ(time_to_loss(run, 0.5).value(), 10);
  EXPECT_DOUBLE_EQ(time_to_loss(run, 2.0).value(), 5);  // at the first evaluation at the latest
  EXPECT_FALSE(time_to_loss(run, 0.4));
}

TEST(TimeToLoss, SkipsLossesThatAreNotFinite) {
  json broken = summary(0, 0.8, 0.5);
  broken["evaluations"][0]["test_loss"] = nullptr;
  EXPECT_DOUBLE_EQ(time_to_loss(measured_run(broken), 1.0).value(), 10);
}

// Evaluated in the end only.
MeasuredRun run_without_curve(int seed, double accuracy, double loss) {
  json blunt = summary(seed, accuracy, loss);
  blunt["evaluations"].erase(std::size_t{0});
  return measured_run(blunt);
}

TEST(TimeToLoss, NeedsTwoEvaluations) {
  EXPECT_FALSE(time_to_loss(run_without_curve(0, 0.8, 0.5), 0.5));
  EXPECT_FALSE(time_to_loss(run_without_curve(0, 0.8, 0.5), 2.0));
}

Outcomes outcomes(const std::string& name, std::vector<MeasuredRun> runs) {
  return {.name = name, .words = {}, .runs = std::move(runs)};
}

TEST(Rows, PairRunsOfTheSameSeed) {
  const std::vector<Outcomes> both = {
      outcomes("base", {run_with(0, 0.80, 0.5), run_with(1, 0.90, 0.5), run_with(2, 0.7, 0.5)}),
      outcomes("other", {run_with(1, 0.92, 0.4), run_with(0, 0.83, 0.4), run_with(7, 0.1, 0.4)})};
  const std::vector<Row> rows = rows_of(both, {.baseline = "base", .margin = 0.005});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[0].is_baseline);
  EXPECT_FALSE(rows[0].difference);
  EXPECT_EQ(rows[1].pairs, 2u);
  EXPECT_NEAR(rows[1].difference->mean, 0.025, 1e-12);
  // Half of what the two differences differ by, times 12.706.
  EXPECT_NEAR(rows[1].difference->interval->high, 0.025 + 12.7062 * 0.005, 1e-5);
  EXPECT_EQ(rows[1].verdict, Verdict::Undecided);
  EXPECT_DOUBLE_EQ(rows[1].speed_ratio->mean, 1);
}

// Loss 0.5 is that of the baseline at 10 s; the other is at 1.4 after 5 s and at 0.4 after 10.
TEST(Rows, TakeTheTimeToWhatTheBaselineReaches) {
  const std::vector<Outcomes> both = {
      outcomes("base", {run_with(0, 0.8, 0.5), run_with(1, 0.9, 0.5)}),
      outcomes("sooner", {run_with(0, 0.8, 0.4), run_with(1, 0.9, 0.4)}),
      outcomes("never", {run_with(0, 0.8, 0.6), run_with(1, 0.9, 0.4)}),
      outcomes("alone", {run_with(7, 0.8, 0.6), run_with(1, 0.9, 0.6)})};
  const std::vector<Row> rows = rows_of(both, {.baseline = "base", .margin = 0.005});
  EXPECT_NEAR(rows[1].time_to_loss->mean, 9.5, 1e-9);
  EXPECT_NEAR(rows[1].time_to_loss_ratio->mean, 10 / 9.5, 1e-9);
  EXPECT_EQ(rows[1].pace, Pace::Sooner);  // both alike: no width
  EXPECT_EQ(rows[2].reached, 1u);
  EXPECT_FALSE(rows[2].time_to_loss);
  EXPECT_FALSE(rows[2].time_to_loss_ratio);
  EXPECT_EQ(rows[2].pace, Pace::None);
  const ComparisonFacts facts{.words = {}, .seeds = {0, 1}, .yardstick = {.baseline = "base"}};
  EXPECT_TRUE(has(text_of_comparison("t", rows, facts), "not reached (1 of 2)"));
  // Of a seed without a baseline nothing was there to reach.
  EXPECT_EQ(rows[3].targets, 1u);
  EXPECT_TRUE(has(text_of_comparison("t", rows, facts), "not reached (1 of 1)"));
}

// The third run has no baseline to reach; those that have one reached it.
TEST(Rows, TakeTheTimeOfThoseWithATarget) {
  const std::vector<Outcomes> both = {
      outcomes("base", {run_with(0, 0.8, 0.5), run_with(1, 0.9, 0.5)}),
      outcomes("other", {run_with(0, 0.8, 0.4), run_with(1, 0.9, 0.4), run_with(7, 0.9, 0.4)})};
  const std::vector<Row> rows = rows_of(both, {.baseline = "base", .margin = 0.005});
  EXPECT_EQ(rows[1].targets, 2u);
  ASSERT_TRUE(rows[1].time_to_loss);
  EXPECT_NEAR(rows[1].time_to_loss->mean, 9.5, 1e-9);
  const ComparisonFacts facts{.words = {}, .seeds = {0, 1, 7}, .yardstick = {.baseline = "base"}};
  EXPECT_FALSE(has(text_of_comparison("t", rows, facts), "not reached"));
}

TEST(Rows, OfRunsWithOneEvaluationHaveNoTimeToALoss) {
  const std::vector<Outcomes> both = {
      outcomes("base", {run_without_curve(0, 0.8, 0.5), run_without_curve(1, 0.9, 0.5)}),
      outcomes("other", {run_without_curve(0, 0.8, 0.4), run_without_curve(1, 0.9, 0.6)})};
  const std::string remark = "runs had one evaluation each: no time to a loss, no curves";
  for (const std::optional<double> loss : {std::optional<double>(), std::optional(1.0)}) {
    const Yardstick yardstick{.baseline = "base", .margin = 0.005, .target_loss = loss};
    const ComparisonFacts facts{.words = {}, .seeds = {0, 1}, .yardstick = yardstick};
    const std::vector<Row> rows = rows_of(both, yardstick);
    EXPECT_EQ(rows[1].targets, 0u);
    EXPECT_FALSE(rows[1].time_to_loss);
    EXPECT_EQ(rows[1].pace, Pace::None);
    EXPECT_FALSE(has(text_of_comparison("t", rows, facts), "not reached"));
    const std::string legend = legend_of_comparison(rows, rows, facts);  // of both budgets
    EXPECT_TRUE(has(legend, "\n" + remark)) << legend;
    EXPECT_EQ(legend.find(remark), legend.rfind(remark)) << legend;
  }
}

TEST(Rows, SayThatSomeRunsHaveOneEvaluation) {
  const Yardstick yardstick{.baseline = "base", .margin = 0.005};
  const ComparisonFacts facts{.words = {}, .seeds = {0}, .yardstick = yardstick};
  std::vector<Outcomes> both = {outcomes("base", {run_with(0, 0.8, 0.5)}),
                                outcomes("other", {run_with(0, 0.8, 0.5)})};
  EXPECT_FALSE(has(legend_of_comparison(rows_of(both, yardstick), {}, facts), "--eval-every"));
  both[1].runs = {run_without_curve(0, 0.8, 0.5)};
  EXPECT_TRUE(has(legend_of_comparison(rows_of(both, yardstick), {}, facts),
                  "some runs had one evaluation each"));
}

TEST(Rows, OfSomeSeedsSayOfHowMany) {
  std::vector<Outcomes> both = {outcomes("base", {}), outcomes("other", {})};
  for (int seed = 0; seed < 5; ++seed) {
    both[0].runs.push_back(run_with(seed, 0.8, 0.5));
    if (seed < 2) {
      both[1].runs.push_back(run_with(seed, 0.8, 0.4));
    }
  }
  const Yardstick yardstick{.baseline = "base", .margin = 0.005};
  const std::vector<Row> rows = rows_of(both, yardstick);
  ComparisonFacts facts{.words = {}, .seeds = {0, 1, 2, 3, 4}, .yardstick = yardstick};
  const std::string text = text_of_comparison("t", rows, facts);
  EXPECT_TRUE(has(text, "equal (2 of 5 pairs)")) << text;
  EXPECT_TRUE(has(text, "sooner (2 of 5 pairs)")) << text;
  EXPECT_EQ(json_of_comparison(rows, {}, facts)["configurations"][1]["pairs"], 2);
  facts.seeds = {0, 1};
  EXPECT_FALSE(has(text_of_comparison("t", rows, facts), "pairs)"));
}

TEST(Rows, TakeTheTimeToAGivenLoss) {
  const std::vector<Outcomes> one = {outcomes("base", {run_with(0, 0.8, 0.5)})};
  const std::vector<Row> rows =
      rows_of(one, {.baseline = "base", .margin = 0, .target_loss = 1.25});
  EXPECT_DOUBLE_EQ(rows[0].time_to_loss->mean, 6.25);
}

TEST(Rows, SayWhichRunsTookAnotherTimeThanTheyShould) {
  std::vector<Outcomes> both = {outcomes("base", {run_with(0, 0.8, 0.5), run_with(1, 0.8, 0.5)}),
                                outcomes("other", {run_with(0, 0.9, 0.4), run_with(1, 0.9, 0.4)})};
  const Yardstick yardstick{.baseline = "base", .margin = 0.005};
  const ComparisonFacts facts{.words = {}, .seeds = {0, 1}, .yardstick = yardstick};
  both[1].runs[0].budget = 9.5;  // of 10 s
  EXPECT_FALSE(has(text_of_comparison("t", rows_of(both, yardstick), facts), "budget"));
  both[1].runs[1].budget = 8;
  EXPECT_EQ(rows_of(both, yardstick)[1].off_budget, 1u);
  both[0].runs[0].budget = 20;
  const std::vector<Row> rows = rows_of(both, yardstick);
  EXPECT_EQ(rows[0].off_budget, 1u);
  EXPECT_EQ(rows[1].off_budget, 2u);
  const std::string text = text_of_comparison("t", rows, facts);
  EXPECT_TRUE(has(text, "better (off budget)")) << text;
  EXPECT_TRUE(has(text, "other, seed 1 took 10.0 s, not the 8.0 s of its budget")) << text;
}

TEST(Rows, OfOneSeedHaveNoVerdict) {
  const std::vector<Outcomes> both = {outcomes("base", {run_with(0, 0.8, 0.5)}),
                                      outcomes("other", {run_with(0, 0.9, 0.4)})};
  const std::vector<Row> rows = rows_of(both, {.baseline = "base", .margin = 0.005});
  EXPECT_NEAR(rows[1].difference->mean, 0.1, 1e-12);
  EXPECT_FALSE(rows[1].difference->interval);
  EXPECT_EQ(rows[1].verdict, Verdict::None);
  const ComparisonFacts facts{.words = {}, .seeds = {0}, .yardstick = {.baseline = "base"}};
  EXPECT_TRUE(has(text_of_comparison("t", rows, facts), "no verdict (one seed)"));
  const auto report = json_of_comparison(rows, {}, facts);
  EXPECT_EQ(report["configurations"][1]["verdict"], "none");
  EXPECT_TRUE(report["configurations"][1]["difference"]["low"].is_null());
  EXPECT_TRUE(report["configurations"][0]["verdict"].is_null());
}

TEST(Rows, WithoutRunsSayWhatFailed) {
  std::vector<Outcomes> both = {outcomes("base", {run_with(0, 0.8, 0.5), run_with(1, 0.8, 0.5)}),
                                outcomes("broken", {})};
  both[1].failures = {{.seed = 0, .why = "no luck"}, {.seed = 1, .why = "none either"}};
  const ComparisonFacts facts{.words = {}, .seeds = {0, 1}, .yardstick = {.baseline = "base"}};
  for (const char* baseline : {"base", "broken"}) {
    const std::vector<Row> rows = rows_of(both, {.baseline = baseline, .margin = 0.005});
    const std::string text = text_of_comparison("t", rows, facts);
    EXPECT_TRUE(has(text, "0, 2 failed")) << text;
    EXPECT_TRUE(has(text, "broken, seed 1 failed: none either")) << text;
    EXPECT_EQ(rows[1].verdict, Verdict::None);
    const auto report = json_of_comparison(rows, {}, facts);
    EXPECT_EQ(report["configurations"][1]["failed"].size(), 2u);
    EXPECT_TRUE(report["configurations"][1]["accuracy"].is_null());
  }
}

}  // namespace
}  // namespace starling::tool
