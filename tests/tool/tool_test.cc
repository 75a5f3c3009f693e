// The tool as a user sees it: the real binary, its output and its exit codes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace {

struct Output {
  int code = -1;
  std::string text;
};

// `errors`: stderr instead of stdout.
Output starling(const std::string& arguments, bool errors = false) {
  const std::string command =
      std::string(STARLING_TOOL) + " " + arguments + (errors ? " 2>&1 >/dev/null" : " 2>/dev/null");
  Output output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return output;
  }
  std::array<char, 4096> buffer{};
  std::size_t n = 0;
  while ((n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    output.text.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

nlohmann::json json_of(const std::string& arguments) {
  const Output output = starling(arguments + " --json");
  EXPECT_EQ(output.code, 0) << arguments;
  return nlohmann::json::parse(output.text);
}

// One line on stderr, exit code 2, with that word in it.
void expect_refusal(const std::string& arguments, const std::string& word) {
  const Output output = starling(arguments, /*errors=*/true);
  EXPECT_EQ(output.code, 2) << arguments;
  EXPECT_EQ(std::count(output.text.begin(), output.text.end(), '\n'), 1) << output.text;
  EXPECT_NE(output.text.find(word), std::string::npos) << arguments << ": " << output.text;
}

TEST(Tool, SaysItsVersionAndHelp) {
  EXPECT_EQ(starling("--version").code, 0);
  EXPECT_EQ(starling("--version").text.rfind("starling ", 0), 0u);
  EXPECT_NE(starling("--help").text.find("simulate"), std::string::npos);
  EXPECT_NE(starling("--help").text.find("topology"), std::string::npos);
  const Output help = starling("simulate collective --help");
  EXPECT_EQ(help.code, 0);
  for (const char* option :
       {"--workers", "--bytes", "--kind", "--algorithm", "--group-size", "--peers", "--per-node",
        "--latency", "--bandwidth", "--local-latency", "--local-bandwidth", "--jitter", "--late",
        "--chunk", "--seed", "--verify", "--timing", "--json"}) {
    EXPECT_NE(help.text.find(option), std::string::npos) << option;
  }
  EXPECT_EQ(starling("topology --help").code, 0);
}

TEST(Tool, WrongWordsGetOneLineWithTheNearestRightOne) {
  expect_refusal("", "subcommand");
  expect_refusal("smulate", "'simulate'");
  expect_refusal("simulate colective", "'collective'");
  expect_refusal("simulate collective --wrokers 4", "'--workers'");
  expect_refusal("simulate collective --kind gruop", "'group'");
  expect_refusal("simulate collective --algorithm drect", "'direct'");
  expect_refusal("topology gruops --workers 4", "groups");
}

TEST(Tool, WrongValuesGetOneLine) {
  expect_refusal("simulate collective --workers -3", "--workers");
  expect_refusal("simulate collective --workers 0", "--workers");
  expect_refusal("simulate collective --workers x", "--workers");
  expect_refusal("simulate collective --bytes 10X", "'10X'");
  expect_refusal("simulate collective --bytes 7", "multiple of 4");
  expect_refusal("simulate collective --late 99:1", "worker 99");
  expect_refusal("simulate collective --late 1", "RANK:SECONDS");
  expect_refusal("simulate collective --latency -1", "negative");
  expect_refusal("simulate collective --bandwidth 0", "positive");
  expect_refusal("topology groups --workers 0", "0");
}

TEST(Tool, SimulatesEveryKindAndVerifiesIt) {
  for (const char* kind :
       {"allreduce", "ring", "group", "neighbour", "push", "broadcast", "barrier"}) {
    for (const char* workers : {"1", "2", "7", "16"}) {
      const nlohmann::json j =
          json_of(std::string("simulate collective --verify --bytes 100K --kind ") + kind +
                  " --workers " + workers);
      EXPECT_EQ(j.at("kind"), kind);
      EXPECT_EQ(j.at("workers"), std::stoi(workers));
      EXPECT_TRUE(j.at("verified"));
      EXPECT_EQ(j.at("per_worker").size(), std::stoul(workers));
    }
  }
}

TEST(Tool, JsonIsAsDocumentedAndTheSameForTheSameSeed) {
  const std::string arguments =
      "simulate collective --workers 13 --bytes 1M --jitter 1e-4 --late 5:0.01 --seed 7";
  const nlohmann::json j = json_of(arguments);
  for (const char* key : {"kind",
                          "algorithm",
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
                          "waited_for",
                          "per_worker"}) {
    EXPECT_TRUE(j.contains(key)) << key;
  }
  EXPECT_FALSE(j.at("closed_form_applies"));
  EXPECT_EQ(j.at("waited_for").at(0).at("worker"), 5);
  EXPECT_NEAR(j.at("waited_for").at(0).at("mean_seconds").get<double>(), 0.01, 0.001);
  EXPECT_EQ(starling(arguments + " --json").text, starling(arguments + " --json").text);
  EXPECT_NE(json_of(arguments + "1").at("trace"), j.at("trace"));
}

TEST(Tool, NamesThoseWhoCameLate) {
  const Output output = starling("simulate collective --workers 8 --late 3:0.05");
  EXPECT_EQ(output.code, 0);
  EXPECT_NE(output.text.find("worker 3 arrived 50.000 ms late"), std::string::npos) << output.text;
}

TEST(Tool, ShowsSchedules) {
  EXPECT_NE(starling("topology list").text.find("base-k"), std::string::npos);
  const nlohmann::json j = json_of("topology groups --workers 16 --group-size 4");
  EXPECT_EQ(j.at("exact_after"), 2);
}

}  // namespace
