// The command line as its users see it: the program is run, and what it prints is read.
#include "tests/tool/tool.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace starling::tool {
namespace {

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> all = {"allreduce", "ring",      "group",  "neighbour",
                                               "push",      "broadcast", "barrier"};
  return all;
}

nlohmann::json simulate(const std::string& arguments) {
  const Output result = run("simulate collective --json " + arguments);
  EXPECT_EQ(result.code, 0) << arguments << ": " << result.err;
  EXPECT_EQ(result.err, "");
  const nlohmann::json json =
      nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(json.is_object()) << result.out;
  return json;
}

// --- Help --------------------------------------------------------------------------------------

TEST(Tool, TellsItsVersion) {
  const Output result = run("--version");
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(result.out.starts_with("starling ")) << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '.'), 2) << "three numbers";
  EXPECT_EQ(result.err, "");
}

TEST(Tool, HelpNamesSubcommandsAndExitCodes) {
  for (const char* help : {"--help", "-h"}) {
    const Output result = run(help);
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.err, "");
    for (const char* part : {"run", "simulate", "topology", "--version", "--help", "Exit codes"}) {
      EXPECT_TRUE(has(result.out, part)) << part << " is not in: " << result.out;
    }
  }
}

TEST(Tool, HelpOfSimulateNamesWhatCanBeSimulated) {
  const Output result = run("simulate --help");
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(has(result.out, "collective")) << result.out;
  EXPECT_EQ(result.err, "");
}

TEST(Tool, HelpOfSimulateCollectiveNamesEveryOptionKindAndAlgorithm) {
  const Output result = run("simulate collective --help");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  std::vector<std::string> words = {
      "--help",          "--workers",         "--bytes",    "--kind",    "--algorithm",
      "--group-size",    "--peers",           "--per-node", "--latency", "--bandwidth",
      "--local-latency", "--local-bandwidth", "--jitter",   "--late",    "--chunk",
      "--seed",          "--verify",          "--timing",   "--json"};
  words.insert(words.end(), kinds().begin(), kinds().end());
  for (const char* algorithm : {"auto", "doubling", "direct", "halving", "ring"}) {
    words.emplace_back(algorithm);
  }
  for (const std::string& word : words) {
    EXPECT_TRUE(has(result.out, word)) << word << " is not in: " << result.out;
  }
}

TEST(Tool, HelpOfTopologyNamesEveryOption) {
  const Output result = run("topology --help");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* word : {"--help", "--workers", "--per-node", "--group-size", "--peers", "--seed",
                           "--sync-period", "--steps", "--bytes", "--json", "names"}) {
    EXPECT_TRUE(has(result.out, word)) << word << " is not in: " << result.out;
  }
}

// --- Mistakes ----------------------------------------------------------------------------------

TEST(Tool, AMisspeltOptionIsAnsweredWithTheNearestOne) {
  expect_refused("simulate collective --worker 4", {"'--worker'", "--workers"});
  expect_refused("simulate collective --bites=4", {"'--bites'", "--bytes"});
  expect_refused("simulate collective --juter 1", {"'--juter'", "--jitter"});
  expect_refused("--versoin", {"'--versoin'", "--version"});
  expect_refused("plan -x 3", {"unknown option '-x'"});
  expect_refused("plan -n abc", {"abc"});
}

TEST(Tool, AMisspeltWordIsAnsweredWithTheNearestOne) {
  expect_refused("simulate collective --kind alreduce", {"'alreduce'", "did you mean 'allreduce'"});
  expect_refused("simulate collective --kind brodcast", {"did you mean 'broadcast'"});
  expect_refused("simulate collective --algorithm halfing",
                 {"'halfing'", "did you mean 'halving'", "doubling, direct"});
}

TEST(Tool, AMisspeltSubcommandIsAnsweredWithTheNearestOne) {
  expect_refused("smulate", {"simulate"});
  expect_refused("simulate colective", {"collective"});
}

TEST(Tool, AMissingSubcommandIsAskedFor) { expect_refused("", {"--help"}); }

TEST(Tool, NumbersThatMakeNoSenseAreRefusedByName) {
  expect_refused("simulate collective --workers -3", {"--workers"});
  expect_refused("simulate collective --workers many", {"--workers"});
  expect_refused("simulate collective --workers", {"--workers"});
  expect_refused("simulate collective --bytes 5", {"--bytes", "multiple of 4"});
  expect_refused("simulate collective --bytes 0", {"--bytes"});
  expect_refused("simulate collective --bytes 10X", {"'10X'", "100M"});
  expect_refused("simulate collective --bandwidth fast", {"'fast'"});
  expect_refused("simulate collective --kind group --group-size 0", {"--group-size"});
  expect_refused("simulate collective --kind push --peers 0", {"--peers"});
  expect_refused("simulate collective --late 3", {"--late", "'3'", "RANK:SECONDS"});
  expect_refused("simulate collective --late 99:1", {"--late", "worker 99"});
  expect_refused("simulate collective --late 1:-1", {"--late"});
}

TEST(Tool, ANetworkThatMakesNoSenseIsRefused) {
  expect_refused("simulate collective --workers 0", {"worker"});
  expect_refused("simulate collective --per-node 0", {"node"});
  expect_refused("simulate collective --latency -1", {"latenc"});
  expect_refused("simulate collective --bandwidth 0", {"bandwidth"});
  expect_refused("simulate collective --jitter -1", {"jitter"});
  expect_refused("simulate collective --latency 1e30", {"latency"});
  expect_refused("simulate collective --workers 2 --per-node 9", {"--per-node 9", "2 workers"});
  expect_refused("simulate collective --late 1:inf", {"--late", "'1:inf'"});
  expect_refused("simulate collective --late 1:nan", {"--late", "'1:nan'"});
  expect_refused("simulate collective --seed -1", {"--seed"});
  expect_refused("simulate collective --chunk -1", {"--chunk"});
  expect_refused("topology ring -n 4 -l 9", {"--per-node 9", "4 workers"});
}

// --- simulate collective -----------------------------------------------------------------------

TEST(SimulateCollective, JsonHasTheDocumentedKeys) {
  const nlohmann::json json = simulate("--workers 8 --bytes 100K --late 3:0.5");
  for (const char* key : {"kind",
                          "workers",
                          "per_node",
                          "bytes",
                          "latency",
                          "bandwidth",
                          "seed",
                          "virtual_seconds",
                          "closed_form_seconds",
                          "closed_form_applies",
                          "bytes_per_worker",
                          "bytes_per_worker_most",
                          "closed_form_bytes",
                          "messages",
                          "events",
                          "trace",
                          "verified",
                          "algorithm",
                          "waited_for",
                          "per_worker"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_FALSE(json.contains("wall_seconds")) << "only with --timing: it differs from run to run";
  EXPECT_EQ(json["kind"], "allreduce");
  EXPECT_EQ(json["algorithm"], "direct");
  EXPECT_EQ(json["workers"], 8);
  EXPECT_EQ(json["bytes"], 100'000);
  EXPECT_EQ(json["bandwidth"], 10e9);
  EXPECT_EQ(json["closed_form_applies"], false);
  EXPECT_EQ(json["verified"], false);
  EXPECT_GE(json["virtual_seconds"], 0.5);
  EXPECT_GE(json["bytes_per_worker_most"], json["bytes_per_worker"]);
  ASSERT_EQ(json["per_worker"].size(), 8u);
  for (std::size_t r = 0; r < 8; ++r) {
    const nlohmann::json& worker = json["per_worker"][r];
    for (const char* key : {"worker", "arrived", "finished", "waited", "bytes_sent"}) {
      EXPECT_TRUE(worker.contains(key)) << key;
    }
    EXPECT_EQ(worker["worker"], r);
    EXPECT_EQ(worker["arrived"], r == 3 ? 0.5 : 0.0);
  }
  const nlohmann::json& first = json["waited_for"].at(0);
  EXPECT_EQ(first["worker"], 3);
  EXPECT_EQ(first["by"], 7);
  EXPECT_GT(first["mean_seconds"], 0.49);
  EXPECT_GE(first["longest_seconds"], first["mean_seconds"]);
}

TEST(SimulateCollective, TimingIsToldWhenAskedFor) {
  const nlohmann::json json = simulate("--workers 4 --timing");
  EXPECT_GT(json["wall_seconds"], 0.0);
  EXPECT_GT(json["messages_per_second"], 0.0);
  EXPECT_TRUE(has(run("simulate collective --timing").out, "messages per second"));
}

TEST(SimulateCollective, TheSameSeedPrintsTheSameBytes) {
  for (const std::string& kind : kinds()) {
    for (const char* format : {"--json", ""}) {
      const std::string arguments = fmt::format(
          "simulate collective {} --kind {} --workers 13 --jitter 1e-4 --per-node 3", format, kind);
      const Output a = run(arguments + " --seed 7");
      const Output b = run(arguments + " --seed 7");
      const Output c = run(arguments + " --seed 8");
      EXPECT_EQ(a.code, 0) << a.err;
      EXPECT_EQ(a.out, b.out) << kind;
      EXPECT_NE(a.out, c.out) << kind;
      EXPECT_EQ(a.err, "");
    }
  }
}

TEST(SimulateCollective, VerifiesEveryKind) {
  for (const std::string& kind : kinds()) {
    for (std::size_t workers : {1u, 2u, 7u}) {
      for (const char* bytes : {"4", "40K"}) {
        const nlohmann::json json = simulate(fmt::format(
            "--verify --kind {} --workers {} --bytes {} --chunk 1024", kind, workers, bytes));
        EXPECT_EQ(json["verified"], true);
        EXPECT_EQ(json["kind"], kind);
        EXPECT_EQ(json["workers"], workers);
        EXPECT_EQ(json.contains("algorithm"),
                  kind == "allreduce" || kind == "ring" || kind == "group");
      }
    }
  }
  EXPECT_TRUE(has(run("simulate collective --verify").out, "verified: every worker"));
}

TEST(SimulateCollective, OneWorkerIsDoneAtOnce) {
  for (const std::string& kind : kinds()) {
    const nlohmann::json json = simulate("--workers 1 --kind " + kind);
    EXPECT_EQ(json["virtual_seconds"], 0.0) << kind;
    EXPECT_EQ(json["closed_form_seconds"], 0.0) << kind;
    EXPECT_EQ(json["messages"], 0) << kind;
    EXPECT_TRUE(json["waited_for"].empty()) << kind;
    EXPECT_EQ(json["per_worker"].size(), 1u);
    EXPECT_EQ(run("simulate collective --workers 1 --kind " + kind).code, 0);
  }
}

TEST(SimulateCollective, AGroupOfOneIsDoneAtOnce) {
  const nlohmann::json json = simulate("--workers 6 --kind group --group-size 1");
  EXPECT_EQ(json["virtual_seconds"], 0.0);
  EXPECT_EQ(json["messages"], 0);
}

TEST(SimulateCollective, LateWorkersAreNamed) {
  const Output result = run("simulate collective --workers 8 --late 5:0.05 --late 2:0.01");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "worker 5 arrived 50.000 ms late")) << result.out;
  EXPECT_TRUE(has(result.out, "worker 2 arrived 10.000 ms late")) << result.out;
  const std::size_t waited = result.out.find("waited for");
  ASSERT_NE(waited, std::string::npos);
  const std::size_t line = result.out.find('\n', waited) + 1;
  EXPECT_TRUE(result.out.substr(line).starts_with("worker 5")) << "the latest comes first";
  EXPECT_TRUE(has(result.out, "if nobody were late")) << result.out;
}

TEST(SimulateCollective, TextTellsTimeBytesAndClosedForm) {
  const Output result = run("simulate collective --workers 4 --bytes 1M");
  EXPECT_EQ(result.code, 0);
  for (const char* part : {"allreduce (direct) of 1.0 MB among 4 workers", "virtual time",
                           "closed form", "busiest worker", "messages", "trace"}) {
    EXPECT_TRUE(has(result.out, part)) << part << " is not in: " << result.out;
  }
  EXPECT_FALSE(has(result.out, "if nobody were late"));
}

}  // namespace
}  // namespace starling::tool
