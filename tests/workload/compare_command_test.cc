// starling compare as a user sees it: what is refused, and real runs that are interrupted, gone on
// with, and looked at again.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/tool/tool.h"
#include "tests/tool/xml.h"
#include "tests/workload/temporary.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using workload::TemporaryFolder;

json summary_in(const fs::path& folder) { return json::parse(text_of(folder / "summary.json")); }

const std::string kRuns =
    "--run 'sum: --algorithm all-reduce --lr 0.02' --run 'own: --algorithm starling' ";
const std::string kCommon = " -- images -n 2 --steps 24 --eval-every 8 --lr 0.05";

std::string comparison(const fs::path& folder, const std::string& options) {
  return fmt::format("compare --out '{}' {} {} {}", folder.string(), kRuns, options, kCommon);
}

TEST(CompareCommand, RefusesInOneLine) {
  const TemporaryFolder folder;
  const std::string out = fmt::format("compare --out '{}/c' ", folder.path().string());
  expect_refused("compare --run 'a: --lr 1' -- images", {"--out"});
  expect_refused(out + "-- images", {"--run 'NAME: WORDS'"});
  expect_refused(out + "--run 'a: --lr 1'", {"words of all runs"});
  expect_refused(out + "--run 'a --lr 1' -- images", {"'a --lr 1'", "NAME: WORDS"});
  expect_refused(out + "--run '../a: --lr 1' -- images", {"'../a: --lr 1'", "letters"});
  expect_refused(out + "--run 'a: --lr 1' --run 'a: --lr 2' -- images", {"two", "'a'"});
  expect_refused(out + "--run 'a: --seed 1' -- images", {"--run a", "--seed"});
  expect_refused(out + "--run 'a: --resume x' -- images", {"--run a", "--resume"});
  expect_refused(out + "--run 'a: --lr 1' -- images --no-evaluation", {"nothing to compare"});
  expect_refused(out + "--run 'sum: --lr 1' --baseline sun -- images", {"'sun'", "'sum'"});
  expect_refused(out + "--run 'a: --lr 1' --budget tme -- images", {"'tme'", "'time'"});
  expect_refused(out + "--run 'a: --lr 1' --seconds 3 -- images", {"--seconds", "--budget"});
  expect_refused(out + "--run 'a: --lr 1' --sedes 3 -- images", {"'--sedes'", "'--seeds'"});
  expect_refused(out + "--plot /no/such/p.svg --run 'a: --lr 1' -- images", {"--plot", "/no/such"});
  for (const char* wrong :
       {"--margin nan", "--seeds 0", "--seeds -2", "--margin -1", "--first-seed -1"}) {
    expect_refused(out + wrong + " --run 'a: --lr 1' -- images", {std::string(wrong).substr(0, 6)});
  }
  EXPECT_FALSE(fs::exists(folder.path() / "c"));
}

// Before anything is run, though the first configuration is fine.
TEST(CompareCommand, PassesOnWhatTheTrainerRefuses) {
  const TemporaryFolder folder;
  expect_refused(fmt::format("compare --out '{}/c' --run 'a: --lr 0.1' --run 'b: --modle mlp' -- "
                             "images -n 2",
                             folder.path().string()),
                 {"--run b", "'--modle'", "'--model'"});
  EXPECT_FALSE(fs::exists(folder.path() / "c"));
}

// What is run in the end counts: a model of its own goes before that of all.
TEST(CompareCommand, RefusesModelsThatCannotBeEvaluated) {
  const TemporaryFolder folder;
  const std::string out = fmt::format("compare --out '{}/c' ", folder.path().string());
  const std::string sleep = " --emulate-compute 0.001:0.001";
  expect_refused(out + "--run 'a: --lr 1' --run 'b: --model flat:100' -- images -n 2" + sleep,
                 {"--run b", "--model flat:100", "nothing to compare"});
  expect_refused(out + "--run 'a: --lr 1' -- images -n 2 --model=flat:100" + sleep,
                 {"--run a", "--model flat:100", "nothing to compare"});
  expect_refused(out + "--run 'a: --model mlp --modle x' -- images -n 2 --model flat:100" + sleep,
                 {"--run a", "'--modle'"});
  EXPECT_FALSE(fs::exists(folder.path() / "c"));
}

pid_t tool_of(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string command = text_of(entry.path() / "cmdline");
    if (command.starts_with(STARLING_TOOL) && has(command, folder.string())) {
      return std::stoi(entry.path().filename().string());
    }
  }
  return 0;
}

bool comes(const fs::path& file) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!fs::exists(file)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (std::chrono::steady_clock::now() > until) {
      return false;
    }
  }
  return true;
}

Output interrupted_in_the_second_run(const fs::path& folder) {
  std::future<Output> running =
      std::async(std::launch::async, [&] { return run(comparison(folder, "--seeds 2")); });
  EXPECT_TRUE(comes(folder / "own/seed-0/config.json"));
  const pid_t tool = tool_of(folder);
  EXPECT_GT(tool, 0);
  if (tool > 0) {
    kill(tool, SIGINT);
  }
  return running.get();
}

void expect_numbers_of_summaries(const json& report, const fs::path& folder) {
  EXPECT_EQ(report.at("baseline"), "sum");
  EXPECT_EQ(report.at("seeds"), json({0, 1}));
  EXPECT_DOUBLE_EQ(report.at("margin").get<double>(), 0.02);
  const json& rows = report.at("configurations");
  ASSERT_EQ(rows.size(), 2u);
  std::vector<double> differences;
  for (std::size_t seed = 0; seed < 2; ++seed) {
    std::vector<double> accuracies;
    for (const json& row : rows) {
      const json summary =
          summary_in(folder / row.at("name").get<std::string>() / fmt::format("seed-{}", seed));
      const double seconds = summary.at("train_seconds");
      const json& found = row.at("runs").at(seed);
      EXPECT_EQ(summary.at("seed"), seed);
      EXPECT_EQ(found.at("seed"), seed);
      EXPECT_EQ(found.at("accuracy"), summary.at("test_accuracy"));
      EXPECT_EQ(found.at("loss"), summary.at("test_loss"));
      EXPECT_DOUBLE_EQ(found.at("seconds").get<double>(), seconds);
      EXPECT_EQ(found.at("samples_per_second"), summary.at("samples_per_second"));
      EXPECT_DOUBLE_EQ(found.at("step_seconds").get<double>(), seconds / 24);
      EXPECT_DOUBLE_EQ(found.at("waiting").get<double>(),
                       summary.at("waited_seconds").get<double>() / seconds);
      EXPECT_EQ(found.at("stale_fraction"), summary.at("stale_fraction"));
      accuracies.push_back(summary.at("test_accuracy"));
    }
    differences.push_back(accuracies[1] - accuracies[0]);
  }
  const json& difference = rows[1].at("difference");
  const double mean = (differences[0] + differences[1]) / 2;
  const double half = 12.7062047 * std::abs(differences[0] - differences[1]) / 2;
  EXPECT_NEAR(difference.at("mean").get<double>(), mean, 1e-9);
  EXPECT_NEAR(difference.at("low").get<double>(), mean - half, 1e-6);
  EXPECT_NEAR(difference.at("high").get<double>(), mean + half, 1e-6);
  const bool is_equal = mean - half >= -0.02 && mean + half <= 0.02;
  EXPECT_EQ(rows[1].at("verdict"), is_equal          ? "equal"
                                   : mean - half > 0 ? "better"
                                   : mean + half < 0 ? "worse"
                                                     : "undecided");
  EXPECT_TRUE(rows[0].at("verdict").is_null());
}

// One seed, both budgets, in a folder whose runs are there: only the one of fixed time is new.
void expect_budget_of_time(const fs::path& folder) {
  const Output result = run(comparison(folder, "--seeds 1 --budget both --json"));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(has(result.err, "run 3 of 3: own, seed 0, fixed time: accuracy")) << result.err;
  const json report = json::parse(result.out);
  EXPECT_EQ(report.at("configurations").at(1).at("verdict"), "none");
  EXPECT_TRUE(report.at("configurations").at(1).at("difference").at("low").is_null());
  const json& time = report.at("time_budget");
  ASSERT_EQ(time.size(), 2u);
  EXPECT_EQ(time[0].at("runs"), report.at("configurations")[0].at("runs"));
  const double budget = summary_in(folder / "sum/seed-0").at("train_seconds");
  const double step = summary_in(folder / "own/seed-0").at("train_seconds").get<double>() / 24;
  EXPECT_EQ(summary_in(folder / "own/time-seed-0").at("steps"),
            std::max(1.0, std::floor(budget / step)));
  EXPECT_DOUBLE_EQ(time[1].at("runs")[0].at("budget_seconds").get<double>(), budget);
  EXPECT_EQ(time[1].at("runs")[0].at("steps"), summary_in(folder / "own/time-seed-0").at("steps"));
  // With the one budget alone its step is still the one that the run rests on.
  const Output again = run(comparison(folder, "--seeds 1 --budget time --json"));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(json::parse(again.out).at("time_budget"), time);
}

TEST(CompareCommand, GoesOnWhereItWasInterrupted) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "c";
  const Output interrupted = interrupted_in_the_second_run(folder);
  EXPECT_EQ(interrupted.code, 128 + SIGINT) << interrupted.err;
  EXPECT_TRUE(has(interrupted.err, "interrupted by SIGINT; the same command goes on"))
      << interrupted.err;
  EXPECT_EQ(interrupted.out, "");
  ASSERT_TRUE(fs::exists(folder / "sum/seed-0/summary.json"));
  ASSERT_FALSE(fs::exists(folder / "own/seed-0/summary.json"));
  const auto written = fs::last_write_time(folder / "sum/seed-0/summary.json");

  const Output whole = run(comparison(folder, "--seeds 2 --margin 2 --json"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_FALSE(has(whole.err, "sum, seed 0")) << whole.err;
  EXPECT_TRUE(has(whole.err, "run 4 of 4: sum, seed 1: accuracy")) << whole.err;
  EXPECT_EQ(fs::last_write_time(folder / "sum/seed-0/summary.json"), written);
  EXPECT_EQ(whole.out, text_of(folder / "compare.json"));
  expect_numbers_of_summaries(json::parse(whole.out), folder);
  const Xml picture = read_xml(text_of(folder / "compare.svg"));
  EXPECT_EQ(picture.fault, "");
  EXPECT_EQ(picture.counts.at("clipPath"), 2);
  // Words of its own go before those of all.
  EXPECT_EQ(json::parse(text_of(folder / "sum/seed-0/config.json")).at("lr"), 0.02);
  EXPECT_EQ(json::parse(text_of(folder / "own/seed-0/config.json")).at("lr"), 0.05);

  expect_refused(comparison(folder, "--seeds 2") + " --batch 32",
                 {"sum/seed-0", "other words", "'--batch 32' now", "--out"});
  expect_budget_of_time(folder);
}

// A warm-up of 75 steps, of which a probe has 70.
TEST(CompareCommand, ProbesWithoutTheScheduleOfTheLearningRate) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "c";
  const Output result = run(
      fmt::format("compare --out '{}' --run 'a: --algorithm all-reduce' --seeds 1 --budget time "
                  "--seconds 3 -- images -n 2 --batch 8 --lr 0.02 --lr-schedule cosine:1200",
                  folder.string()));
  ASSERT_EQ(result.code, 0) << result.err;
  const json probe = json::parse(text_of(folder / "a/probe-seed-0/config.json"));
  EXPECT_EQ(probe.at("lr_schedule"), "constant");
  EXPECT_EQ(probe.at("lr"), 0.0);
  const json whole = json::parse(text_of(folder / "a/time-seed-0/config.json"));
  EXPECT_EQ(whole.at("lr_schedule"), "cosine:1200");
  EXPECT_EQ(whole.at("lr"), 0.02);
}

TEST(CompareCommand, KeepsRunsWhoseWordsMeanTheSame) {
  const TemporaryFolder temporary;
  const std::string out =
      fmt::format("compare --seeds 1 --json --out '{}/c' ", temporary.path().string());
  const Output first = run(out + "--run 'a: --lr 0.02 --bf16' -- images -n 2 --steps 4");
  ASSERT_EQ(first.code, 0) << first.err;
  for (const char* same : {"--run 'a: --bf16 --lr=0.02' -- images --steps 4 --workers 2",
                           "--run 'a: --steps 4' -- images --lr 0.02 -n2 --bf16"}) {
    const Output again = run(out + same);
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.err, "") << same;  // nothing was run
  }
  expect_refused(out + "--run 'a: --bf16 --lr=0.03' -- images --steps 4 -n 2",
                 {"a/seed-0", "other words ('--lr 0.02' then, '--lr 0.03' now)"});
}

// A rate that makes numbers infinite is no wrong input: it is found out.
TEST(CompareCommand, GoesOnWhenARunFails) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "c";
  const Output result =
      run(fmt::format("compare --out '{}' --run 'wild: --lr 1e6' --run 'mild: --lr 0.01' --seeds 1 "
                      "--baseline mild -- images -n 2 --steps 12",
                      folder.string()));
  EXPECT_EQ(result.code, 1) << result.err;
  for (const char* part : {"0, 1 failed", "wild, seed 0 failed: worker", "wild/seed-0.log",
                           "baseline", "runs had one evaluation each"}) {
    EXPECT_TRUE(has(result.out, part)) << part << " is not in\n" << result.out;
  }
  EXPECT_TRUE(fs::exists(folder / "mild/seed-0/summary.json"));
  EXPECT_TRUE(has(text_of(folder / "wild/seed-0.log"), "not finite"));
}

}  // namespace
}  // namespace starling::tool
