// starling topology as a user runs it.
#include "starling/tool/topology_command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "starling/base/error.h"

namespace starling::tool {
namespace {

std::string output_of(const std::string& arguments) {
  CLI::App app;
  add_topology_command(app);
  testing::internal::CaptureStdout();
  try {
    app.parse("topology " + arguments);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

TEST(TopologyCommand, Json) {
  const auto json =
      nlohmann::json::parse(output_of("aer --workers 16 --per-node 4 --bytes 1M --json"));
  EXPECT_EQ(json["schedule"], "aer");
  EXPECT_EQ(json["workers"], 16);
  EXPECT_EQ(json["period"], 4);
  EXPECT_EQ(json["exact_after"], 4);
  ASSERT_EQ(json["steps"].size(), 4u);
  EXPECT_EQ(json["steps"][1]["groups"][1], (std::vector<int>{8, 9, 10, 11}));
  EXPECT_EQ(json["steps"][1]["self_weight"], (std::vector<double>{0.125, 0.25, 0.25}));
  EXPECT_EQ(json["deviation"][0], 1.0);
  EXPECT_NEAR(json["deviation"][2], 1.0 / 15, 1e-12);
  EXPECT_EQ(json["deviation"][4], 0.0);
  EXPECT_NEAR(json["network_bytes_per_node"], 875000, 1e-6);
  EXPECT_EQ(json.size(), 7u);
}

TEST(TopologyCommand, JsonOfEdgesAndOfNoPeriod) {
  const auto push = nlohmann::json::parse(output_of("push -n 3 --json"));
  EXPECT_EQ(push["exact_after"], nullptr);
  EXPECT_EQ(push["steps"][0]["edges"].size(), 6u);
  EXPECT_EQ(push["steps"][0]["edges"][1], nlohmann::json::parse("[2, 0, 0.5]"));
  const auto pairs = nlohmann::json::parse(output_of("pairs -n 6 --seed 3 --steps 5 --json"));
  EXPECT_EQ(pairs["period"], nullptr);
  EXPECT_EQ(pairs["steps"].size(), 5u);
  EXPECT_EQ(pairs["deviation"].size(), 6u);
  EXPECT_EQ(pairs["steps"][0]["self_weight"], 0.5);
}

// What --json prints can be read back as a file.
TEST(TopologyCommand, JsonRoundTrip) {
  for (const std::string options : {"base-k -n 7", "aer -n 12 -l 2", "groups -n 7 -s 3"}) {
    const std::string path =
        testing::TempDir() + "starling_round_trip_" + std::to_string(::getpid()) + ".json";
    const std::string printed = output_of(options + " --json");
    std::ofstream(path) << printed;
    auto json = nlohmann::json::parse(printed);
    const auto again = nlohmann::json::parse(
        output_of("file:" + path + " -n " + std::to_string(json["workers"].get<int>()) + " --json" +
                  (options.find("-l 2") != std::string::npos ? " -l 2" : "")));
    std::remove(path.c_str());
    json["schedule"] = again["schedule"];
    EXPECT_EQ(again, json) << options;
  }
}

TEST(TopologyCommand, DrawingListAndComparison) {
  const std::string drawing = output_of("aer --workers 16 --per-node 4");
  EXPECT_NE(drawing.find("step 2   AAAA|BBBB|CCCC|BBBB"), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("{4-7,12-15}"), std::string::npos);
  EXPECT_NE(drawing.find("1.17188"), std::string::npos);
  const std::string both = output_of("ring exponential -n 16 --steps 3");
  EXPECT_NE(both.find("ring  exponential"), std::string::npos) << both;
  EXPECT_NE(both.find("0.133333    0.0666667"), std::string::npos) << both;
  const std::string list = output_of("list");
  for (const char* name : {"complete", "ring-neighbours", "fixed-groups", "base-k", "file:PATH"}) {
    EXPECT_NE(list.find(name), std::string::npos);
  }
}

TEST(TopologyCommand, EveryScheduleWithOneWorker) {
  for (const std::string name : {"complete", "ring", "ring-neighbours", "exponential", "push",
                                 "aer", "groups", "fixed-groups", "pairs", "base-k"}) {
    const auto json = nlohmann::json::parse(output_of(name + " -n 1 --json"));
    EXPECT_EQ(json["exact_after"], 0) << name;
    EXPECT_EQ(json["steps"][0]["groups"], nlohmann::json::parse("[[0]]")) << name;
    EXPECT_EQ(json["network_bytes_per_node"], 0.0) << name;
  }
}

TEST(TopologyCommand, Errors) {
  EXPECT_THROW(output_of("ring"), Error);
  EXPECT_THROW(output_of("ring -n 0"), Error);
  EXPECT_THROW(output_of("rings -n 4"), Error);
  EXPECT_THROW(output_of("ring -n 4 --steps 0"), Error);
  EXPECT_THROW(output_of("ring -n 4 --bytes lots"), Error);
  EXPECT_THROW(output_of("-n 4"), CLI::ParseError);
}

}  // namespace
}  // namespace starling::tool
