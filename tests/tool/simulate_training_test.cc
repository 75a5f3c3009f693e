// starling simulate as a user sees it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/tool/tool.h"

namespace starling::tool {
namespace {

using nlohmann::json;

constexpr const char* kQuick = "simulate --workers 8 --steps 20 --bytes 4M ";

std::string file_of(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

json simulated(const std::string& arguments) {
  const Output result = run(kQuick + ("--json " + arguments));
  EXPECT_EQ(result.code, 0) << arguments << ": " << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out, nullptr, /*allow_exceptions=*/false);
}

TEST(SimulateTraining, JsonHoldsWhatWasAskedAndWhatCameOut) {
  const json result = simulated("--algorithm wagma --compute normal:0.1,0.001 --update 0.01");
  ASSERT_TRUE(result.is_object());
  EXPECT_EQ(result.at("options").at("algorithm"), "wagma");
  EXPECT_EQ(result.at("options").at("sync_period"), 10);
  EXPECT_EQ(result.at("options").at("schedule"), "groups");
  EXPECT_EQ(result.at("options").at("seed"), 1);
  const double step = result.at("step_seconds");
  EXPECT_GT(step, 0.1);
  EXPECT_NEAR(result.at("steps_per_second").get<double>(), 1 / step, 1e-9);
  EXPECT_LE(result.at("step_seconds_interval")[0].get<double>(), step);
  EXPECT_GE(result.at("step_seconds_interval")[1].get<double>(), step);
  EXPECT_NEAR(result.at("waiting").at("update").get<double>(), 0.01, 1e-9);
  EXPECT_GE(result.at("waiting").at("straggler").get<double>(), 0);
  EXPECT_GE(result.at("waiting").at("exchange").get<double>(), 0);
  EXPECT_GT(result.at("stale_fraction").get<double>(), 0);
  int contributions = 0;
  for (const auto& [age, count] : result.at("age_histogram").items()) {
    contributions += count.get<int>();
  }
  EXPECT_EQ(contributions, 8 * 20);
  EXPECT_GT(result.at("card_bytes_per_step").get<double>(), 4e6);
  EXPECT_FALSE(result.contains("wall_seconds"));
  const json timed = simulated("--timing");
  EXPECT_GT(timed.at("wall_seconds").get<double>(), 0);
  EXPECT_GT(timed.at("events_per_second").get<double>(), 0);
}

TEST(SimulateTraining, TheSameSeedPrintsTheSameBytes) {
  const std::string line = kQuick + std::string("--compute 0.1:0.2:0.4 --json --seed ");
  EXPECT_EQ(run(line + "3").out, run(line + "3").out);
  EXPECT_NE(run(line + "3").out, run(line + "4").out);
}

TEST(SimulateTraining, ReadsMeasuredSteps) {
  const std::string list = file_of("list.json", "[0.1, 0.3]");
  EXPECT_NEAR(simulated("--algorithm ad-psgd --compute " + list).at("computing").get<double>(), 0.2,
              0.04);
  const std::string pairs =
      file_of("pairs.json", "[{\"forward\": 0.1, \"backward\": 0.3},\n[0.2, 0.2]]");
  EXPECT_NEAR(simulated("--compute " + pairs).at("computing").get<double>(), 0.4, 1e-9);
}

TEST(SimulateTraining, AWrongFileIsNamedWithPlaceAndLine) {
  const std::vector<std::vector<std::string>> cases = {
      {"[0.1,\n 0.2,\n \"x\"]", "line 3", "step 2", "\"x\""},
      {"[0.1,\n -0.2]", "line 2", "step 1", "-0.2"},
      {"[{\"forward\": 1,\n\"backward\": 2},\n{\"forward\": 1}]", "line 3", "step 1", "backward"},
      {"[{\"forward\": 1,\n\"backward\": -2}]", "line 2", "step 0, backward", "-2"},
      {"[[1, 2],\n[1]]", "line 2", "step 1"},
      {"[1,\n2", "line 2", "not JSON"},
      {"[]", "line 1"},
      {"{}", "line 1"}};
  for (const auto& words : cases) {
    const std::string path = file_of("wrong.json", words[0]);
    std::vector<std::string> parts(words.begin() + 1, words.end());
    parts.push_back("wrong.json");
    expect_refused("simulate --compute " + path, parts);
  }
  expect_refused("simulate --compute /nowhere/x.json", {"/nowhere/x.json"});
}

TEST(SimulateTraining, ATraceHasTracksWhoseSlicesDoNotOverlap) {
  const std::string path = testing::TempDir() + "trace.json";
  simulated("--algorithm dadam --buckets 2 --compute 0.1:0.2:0.4 --update 0.01 --trace " + path +
            " --trace-workers 3 --trace-steps 5");
  std::ifstream file(path);
  const json trace = json::parse(file);
  std::map<int, double> ends;
  std::map<std::string, int> names;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") {
      continue;
    }
    ++names[event.at("name")];
    double& end = ends[event.at("tid")];
    EXPECT_GE(event.at("ts").get<double>(), end - 1e-6);
    end = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(ends.size(), 6U);
  EXPECT_EQ(names["F"], 3 * 5);
  EXPECT_EQ(names["B"], 3 * 5 * 2);
  EXPECT_EQ(names["U"], 3 * 5 * 2);
  EXPECT_EQ(names["C"], 3 * 5 * 2);
}

// 64 workers that collect experience: what rounds that wait for nobody gain over averaging in
// person at every step.
TEST(SimulateTraining, WaitAvoidanceOnNavigation) {
  for (const int seed : {1, 2, 3}) {
    const auto step = [&](const std::string& algorithm) -> double {
      const Output result =
          run(fmt::format("simulate --workers 64 --steps 160 --bytes 34M --compute "
                          "draw:navigation:2.1 --seed {} --json --algorithm {}",
                          seed, algorithm));
      EXPECT_EQ(result.code, 0) << result.err;
      return json::parse(result.out).at("step_seconds");
    };
    const double local = step("local-sgd --sync-period 1");
    const double wagma = step("wagma --group-size 8 --sync-period 8");
    const double starling = step("starling --group-size 8");
    EXPECT_GT(local / wagma, 2.1) << seed;
    EXPECT_LT(local / wagma, 2.7) << seed;
    EXPECT_LE(starling, wagma) << seed;
  }
}

TEST(SimulateTraining, WrongInputIsRefused) {
  expect_refused("simulate --workers 1 --compute constant:0", {"nothing takes any time"});
  expect_refused("simulate --algorithm wagna", {"unknown algorithm 'wagna'", "wagma"});
  expect_refused("simulate --algorithm wagma --schedule group", {"--schedule of wagma", "groups"});
  expect_refused("simulate --workers 0", {"--workers"});
  expect_refused("simulate --compute constant:1 --workers -3", {"--workers"});
  expect_refused("simulate --workers 4 --per-node 8", {"--per-node 8", "4 workers"});
  expect_refused("simulate --workers 4 --group-size 8", {"--group-size 8", "4 workers"});
  expect_refused("simulate --bytes 8 --buckets 3", {"--buckets 3", "2 numbers"});
  expect_refused("simulate --bytes 7", {"--bytes", "'7'"});
  expect_refused("simulate --steps 0", {"--steps"});
  expect_refused("simulate --compute nonsense", {"nonsense"});
  expect_refused("simulate --delay 99x1", {"99x1"});
  expect_refused("simulate --trigger never", {"--trigger", "never", "quorum:K"});
  expect_refused("simulate --workers 2 --trigger quorum:9", {"'quorum:9'", "2 workers"});
  expect_refused("simulate --forward nan", {"--forward"});
  expect_refused("simulate --algorithm wagma --peers 2", {"--peers"});
  expect_refused("simulate --worker 3", {"'--worker'", "'--workers'"});
  expect_refused("simulate --trace /nowhere/t.json", {"/nowhere/t.json"});
  expect_refused("simulate --workers 3 collective", {"--workers", "training"});
}

}  // namespace
}  // namespace starling::tool
