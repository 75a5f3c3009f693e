// starling train as a user sees it: what is refused, and short runs of real workers.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/tool/tool.h"
#include "tests/workload/temporary.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using workload::TemporaryFolder;

std::vector<json> lines_of(const fs::path& file) {
  std::vector<json> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(json::parse(line));
  }
  return lines;
}

// One line on stderr that says `part`, nothing on stdout.
void expect_failed(const Output& result, int code, const std::string& part) {
  EXPECT_EQ(result.code, code);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(result.err.starts_with("starling: ")) << result.err;
  EXPECT_TRUE(has(result.err, part)) << "'" << part << "' is not in: " << result.err;
}

// Each takes as long as torch takes to load: more of them are in images_options_test.cc.
TEST(TrainCommand, RefusesInOneLine) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"--modle mlp", "'--modle'; did you mean '--model'?"},
      {"more", "'more'"},
      {"--model mpl", "did you mean 'mlp'?"},
      {"--steps 0", "--steps must be between 1 and"},
      {"--steps many", "--steps"},
      {"-n 0", "--workers must be between 1 and 4096"},
      {"-n 4 --group-size 5", "--group-size 5 is more than the 4 workers of the job"},
      {"-n 4 --delay 9x0.1", "9"},
      {"--device cuda", "a model on a GPU is not supported yet"},
      {"-n 2 --trigger quorum:9", "the job has 2 workers"},
      {"--algorithm alone --bf16", "alone averages nothing"},
      {"--resume ''", "no folder is named"},
      {"--steps 1 --algorithm all-reduce,wagna", "did you mean 'wagma'?"},
  };
  for (const auto& [arguments, part] : wrong) {
    expect_refused("train images " + arguments, {part});
  }
}

// Nothing is evaluated: the table has no accuracy to show.
TEST(TrainCommand, SeveralAlgorithmsWithoutEvaluation) {
  const TemporaryFolder folder;
  const Output result = run(
      fmt::format("train images -n 2 --model flat:1000 --emulate-compute constant:0.002 --steps 3 "
                  "--algorithm all-reduce,starling --out '{}'",
                  (folder.path() / "runs").string()));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "all-reduce          -")) << result.out;
  EXPECT_TRUE(has(result.out, "starling            -")) << result.out;
}

TEST(TrainCommand, HelpNamesTheOptions) {
  const Output result = run("train images --help");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* option : {"--workers", "--algorithm", "--emulate-compute", "--json", "--clip"}) {
    EXPECT_TRUE(has(result.out, option)) << option;
  }
  EXPECT_FALSE(has(result.out, "--check "));
}

TEST(TrainCommand, SaysWhichDataIsMissing) {
  const TemporaryFolder folder;
  const workload::TemporaryVariable data("STARLING_DATA", folder.path().c_str());
  expect_refused("train images -n 2", {"fashion-mnist", "apt-get install dataset-fashion-mnist"});
  expect_refused("train images -n 2 --data cifar10", {"cifar10", "starling data cifar10"});
}

TEST(TrainCommand, SaysWhatItCannotWrite) {
  expect_failed(run("train images -n 2 --steps 1 --out /dev/null/run"), 1, "/dev/null/run");
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "summary.json") << "mine";
  const fs::path& out = folder.path();
  expect_failed(run(fmt::format("train images -n 2 --steps 1 --out '{}'", out.string())), 1,
                "not overwritten");
  EXPECT_EQ(text_of(out / "summary.json"), "mine");
}

TEST(TrainCommand, TheWarmUpIsInNoTime) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "run";
  const Output result =
      run(fmt::format("train images -n 2 --steps 12 --warm-up-steps 8 --no-evaluation --out '{}' "
                      "--emulate-compute 0.02:0.03 --json",
                      out.string()));
  ASSERT_EQ(result.code, 0) << result.err;
  const json summary = json::parse(result.out);
  EXPECT_EQ(summary.at("steps"), 12);
  EXPECT_EQ(summary.at("samples"), 4 * 2 * 64);
  EXPECT_GE(summary.at("train_seconds").get<double>(), 4 * 0.05);
  double all = 0;
  double timed = 0;
  for (const json& line : lines_of(out / "metrics-0.jsonl")) {
    ASSERT_EQ(line.at("kind"), "step");
    all += line.at("seconds").get<double>();
    timed += line.at("step") >= 8 ? line.at("seconds").get<double>() : 0;
  }
  EXPECT_LT(timed, all - 8 * 0.05);
  // The mean over both workers.
  EXPECT_LT(summary.at("step_seconds").get<double>() * 4, all);
  EXPECT_TRUE(summary.at("test_accuracy").is_null());
  EXPECT_TRUE(summary.at("evaluations").empty());
}

// A disk of a few pages, full after some steps: whoever cannot go on is lost to the others, who
// soon have the same to say.
TEST(TrainCommand, AFullDiskIsOneLine) {
  const TemporaryFolder folder;
  const std::string disk = folder.path().string();
  const std::string said = disk + ".said";
  const std::string command = fmt::format(
      "unshare -m sh -c \"mount -t tmpfs -o size=40k none '{}' && '{}' train images -n 2 "
      "--emulate-compute 0.001:0.001 --steps 100000 --out '{}/run'\" 2>'{}'",
      disk, STARLING_TOOL, disk, said);
  const int status = std::system(command.c_str());
  Output result{.code = WEXITSTATUS(status), .out = "", .err = text_of(said)};
  fs::remove(said);
  expect_failed(result, 1, "No space left on device");
}

// Runs, with --json and a new folder; checks what every run has in common.
json train(const std::string& prefix, const std::string& arguments, const fs::path& folder,
           std::size_t workers, std::size_t steps) {
  const Output result = run(fmt::format("{} images --steps {} {} --out '{}' --json", prefix, steps,
                                        arguments, folder.string()));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, text_of(folder / "summary.json"));
  if (result.code != 0) {
    return {};
  }
  json summary = json::parse(result.out);
  EXPECT_EQ(summary["workers"], workers);
  EXPECT_EQ(summary["steps"], steps);
  EXPECT_EQ(json::parse(text_of(folder / "config.json"))["workers"], workers);
  for (std::size_t rank = 0; rank < workers; ++rank) {
    const std::vector<json> lines = lines_of(folder / fmt::format("metrics-{}.jsonl", rank));
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                            [](const json& line) { return line["kind"] == "step"; }),
              steps)
        << "worker " << rank;
    EXPECT_EQ(lines.empty() ? json() : lines.back()["kind"], "evaluation");
  }
  return summary;
}

TEST(TrainCommand, TrainsAndWritesWhatItDid) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "run";
  const json summary = train("train", "-n 2 --lr 0.1 --eval-every 10", folder, 2, 30);
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary["folder"], folder.string());
  EXPECT_EQ(summary["model"], "mlp");
  EXPECT_EQ(summary["data"], "fashion-mnist");
  EXPECT_EQ(summary["algorithm"], "starling");
  EXPECT_EQ(summary["workers_left"], 2);
  EXPECT_EQ(summary["lost"], json::array());
  EXPECT_EQ(summary["parameters"], 784 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10);
  EXPECT_DOUBLE_EQ(summary["samples"], 30.0 * 64 * 2);
  EXPECT_NEAR(summary["epochs"], 30.0 / 468, 1e-9);
  // Ten classes: guessing has 0.1 and a loss of 2.3.
  EXPECT_GT(summary["test_accuracy"], 0.5);
  EXPECT_LE(summary["test_accuracy"], 1);
  EXPECT_LT(summary["test_loss"], 1.5);
  EXPECT_LT(summary["train_loss"], 1.5);
  EXPECT_GT(summary["train_loss"], 0);
  EXPECT_GT(summary["train_seconds"], 0);
  EXPECT_NEAR(summary["samples_per_second"].get<double>() * summary["train_seconds"].get<double>(),
              30.0 * 64 * 2, 1e-3);
  EXPECT_GT(summary["step_seconds"], 0);
  EXPECT_LE(summary["step_seconds_p50"], summary["step_seconds_p99"]);
  EXPECT_GE(summary["stale_fraction"], 0);
  EXPECT_LE(summary["stale_fraction"], 1);
  EXPECT_GE(summary["consensus_distance"], 0);
  EXPECT_GT(summary["bytes_per_step"], 0);
  EXPECT_EQ(summary["skipped_steps"], 0);
  ASSERT_EQ(summary["evaluations"].size(), 3);
  EXPECT_EQ(summary["evaluations"][0]["step"], 10);
  EXPECT_EQ(summary["evaluations"][2]["step"], 30);
  EXPECT_FALSE(lines_of(folder / "ledger-0.jsonl").empty());
  EXPECT_FALSE(lines_of(folder / "ledger-1.jsonl").empty());
  EXPECT_FALSE(fs::exists(folder / "summary.json.part"));
}

TEST(TrainCommand, TrainsByEveryKindOfAlgorithm) {
  const TemporaryFolder temporary;
  for (const char* algorithm : {"all-reduce", "wagma", "dadam"}) {
    SCOPED_TRACE(algorithm);
    const json summary = train("train", fmt::format("-n 2 --algorithm {}", algorithm),
                               temporary.path() / algorithm, 2, 20);
    ASSERT_TRUE(summary.is_object());
    EXPECT_GT(summary["test_accuracy"], 0.3);
  }
}

TEST(TrainCommand, SleepsInPlaceOfComputing) {
  const TemporaryFolder temporary;
  const json summary = train("train", "-n 2 --emulate-compute 0.01:0.02 --delay 1x0.01",
                             temporary.path() / "run", 2, 20);
  ASSERT_TRUE(summary.is_object());
  EXPECT_TRUE(summary["train_loss"].is_null());
  EXPECT_GE(summary["step_seconds"], 0.030);
}

TEST(TrainCommand, JoinsTheJobOfALauncher) {
  const TemporaryFolder temporary;
  train("run -n 2 --no-prefix -- " STARLING_TRAIN, "", temporary.path() / "program", 2, 5);
  train("run -n 2 --no-prefix -- " STARLING_TOOL " train", "", temporary.path() / "tool", 2, 5);
  const fs::path folder = temporary.path() / "mpirun";
  const std::string command = fmt::format(
      "mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n 2 {} images "
      "--steps 5 --out '{}' >/dev/null",
      STARLING_TRAIN, folder.string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(json::parse(text_of(folder / "summary.json"))["workers"], 2);
}

TEST(TrainCommand, RefusesAnotherNumberOfWorkersThanTheJobHas) {
  const Output result =
      run("run -n 2 --no-prefix -- " STARLING_TRAIN " images --steps 1 -n 3 --out /dev/null/run");
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "--workers 3: this job has 2")) << result.err;
}

// Processes of the program whose command line names `folder`.
std::vector<pid_t> workers_of(const fs::path& folder) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string command = text_of(entry.path() / "cmdline");
    if (command.starts_with(STARLING_TRAIN) && has(command, folder.string())) {
      found.push_back(std::stoi(entry.path().filename().string()));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// A long run; when it has begun to train, `strike` gets its workers.
Output strike_while_training(const fs::path& folder, const std::string& arguments,
                             const std::function<void(const std::vector<pid_t>&)>& strike) {
  std::future<Output> running = std::async(std::launch::async, [&] {
    return run(fmt::format("train images -n 3 --emulate-compute 0.01:0.01 --out '{}' {}",
                           folder.string(), arguments));
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!fs::exists(folder / "metrics-2.jsonl") ||
         fs::file_size(folder / "metrics-2.jsonl") == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (std::chrono::steady_clock::now() > until) {
      ADD_FAILURE() << "it does not begin";
      break;
    }
  }
  strike(workers_of(folder));
  return running.get();
}

TEST(TrainCommand, GoesOnWithoutALostWorker) {
  for (const std::size_t victim : {0, 2}) {  // the leader, and another
    const TemporaryFolder temporary;
    const fs::path folder = temporary.path() / "run";
    const Output result =
        strike_while_training(folder, "--steps 150", [&](const std::vector<pid_t>& workers) {
          ASSERT_EQ(workers.size(), 3);
          kill(workers[victim], SIGKILL);
        });
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(has(result.err, "was killed by signal 9 (SIGKILL); the other 2 finished without"))
        << result.err;
    ASSERT_TRUE(fs::exists(folder / "summary.json")) << result.err;
    const json summary = json::parse(text_of(folder / "summary.json"));
    EXPECT_EQ(summary["workers_left"], 2);
    EXPECT_EQ(summary["lost"].size(), 1);
  }
}

TEST(TrainCommand, StopsIfAskedToWhenAWorkerIsLost) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "run";
  const Output result = strike_while_training(
      folder, "--steps 100000 --on-loss stop",
      [](const std::vector<pid_t>& workers) { kill(workers.at(1), SIGKILL); });
  EXPECT_EQ(result.code, 1) << result.err;
  EXPECT_TRUE(has(result.err, "was killed by signal 9 (SIGKILL); the others were ended"))
      << result.err;
  EXPECT_FALSE(fs::exists(folder / "summary.json"));
}

}  // namespace
}  // namespace starling::tool
