// starling train as a user sees it: what is refused, and short runs of real workers.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
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

#include "starling/base/error.h"
#include "starling/base/folder_lock.h"
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

// Runs a script with a small disk at ./disk, which is gone afterwards: its exit code, and what it
// has printed on stdout and, into ./said, on stderr.
Output run_with_disk(const std::string& size, const std::string& script) {
  const TemporaryFolder folder;
  const fs::path& here = folder.path();
  fs::create_directories(here / "disk");
  std::ofstream(here / "script") << fmt::format(
      "cd '{}' && mount -t tmpfs -o size={} none disk || exit 77\n{}", here.string(), size, script);
  const int status = std::system(
      fmt::format("unshare -m sh '{0}/script' >'{0}/out' 2>'{0}/said'", here.string()).c_str());
  return {.code = WEXITSTATUS(status), .out = text_of(here / "out"), .err = text_of(here / "said")};
}

std::string lost_line(const std::string& file) {
  return fmt::format(
      "cannot write disk/run/{}: No space left on device; training goes on without it\n", file);
}

// A few pages, full after some steps, to the end.
TEST(TrainCommand, OnAFullDiskTrainingGoesOnAndTheSummaryIsPrinted) {
  const Output result = run_with_disk(
      "40k", fmt::format("'{}' train images -n 2 --model flat:1000 --emulate-compute 0.001:0.001 "
                         "--steps 900 --out disk/run --json",
                         STARLING_TOOL));
  EXPECT_EQ(result.code, 1) << result.err;
  for (const char* file : {"metrics-0.jsonl", "metrics-1.jsonl"}) {
    EXPECT_TRUE(has(result.err, lost_line(file))) << result.err;
  }
  EXPECT_TRUE(result.err.ends_with(
      "\nstarling: cannot write disk/run/summary.json: No space left on device\n"))
      << result.err;
  const json summary = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(summary.is_object()) << result.out;
  EXPECT_EQ(summary["steps"], 900);
  EXPECT_EQ(summary["workers_left"], 2);
  EXPECT_GE(summary["files_lost"].size(), 2U);
}

// Somebody else fills it, and makes room before the end: what was lost stays lost, but for the
// lines before.
TEST(TrainCommand, FilesThatAFullDiskCutShortAreInTheSummary) {
  const Output result = run_with_disk("1m", fmt::format(R"(
'{}' train images -n 2 --model flat:1000 --emulate-compute 0.002:0.002 --steps 900 --out disk/run &
run=$!
until [ -s disk/run/metrics-0.jsonl ] && [ -s disk/run/metrics-1.jsonl ]; do
  kill -0 $run || exit 78
  sleep 0.01
done
cat /dev/zero >disk/filler 2>/dev/null
until [ $(grep -c 'cannot write disk/run/metrics' said) -ge 2 ]; do
  kill -0 $run || exit 79
  sleep 0.01
done
rm disk/filler
wait $run
code=$?
cat disk/run/metrics-*.jsonl
cat disk/run/summary.json >&2
exit $code
)",
                                                        STARLING_TOOL));
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* file : {"metrics-0.jsonl", "metrics-1.jsonl"}) {
    EXPECT_TRUE(has(result.err, lost_line(file))) << result.err;
    EXPECT_EQ(result.err.find(lost_line(file)), result.err.rfind(lost_line(file)));
  }
  const json summary = json::parse(result.err.substr(result.err.find("\n{\n")), nullptr, false);
  ASSERT_TRUE(summary.is_object()) << result.err;
  const json& lost = summary["files_lost"];
  EXPECT_EQ(std::count(lost.begin(), lost.end(), "metrics-0.jsonl"), 1) << lost;
  EXPECT_EQ(std::count(lost.begin(), lost.end(), "metrics-1.jsonl"), 1) << lost;
  std::istringstream lines(result.out);
  std::size_t steps = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('{')) {
      EXPECT_TRUE(json::parse(line, nullptr, false).is_object()) << line;
      ++steps;
    }
  }
  EXPECT_GT(steps, 0U);
  EXPECT_LT(steps, 1800U);
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

// How long steps of a worker took without waiting for others: the least, for a machine may be busy.
double least_own_time(const fs::path& folder, int rank) {
  double least = 1e9;
  for (const json& line : lines_of(folder / fmt::format("metrics-{}.jsonl", rank))) {
    if (line["kind"] == "step" && line["step"] > 0) {  // the first lays the model out
      least = std::min(least, line["seconds"].get<double>() - line["waited"].get<double>());
    }
  }
  return least;
}

// Of real and of emulated steps; only the one who is delayed is slow, the other waits.
TEST(TrainCommand, DelaysAreOfTheirWorker) {
  const TemporaryFolder temporary;
  for (const char* compute : {"", "--emulate-compute 0.01:0.02", "--pace 0.01:0.02"}) {
    SCOPED_TRACE(compute);
    const double paced = *compute == 0 ? 0 : 0.03;
    const fs::path folder = temporary.path() / fmt::format("run{}", std::strlen(compute));
    const json summary =
        train("train", fmt::format("-n 2 --algorithm all-reduce --delay rank:1:0.2 {}", compute),
              folder, 2, 6);
    ASSERT_TRUE(summary.is_object());
    EXPECT_GE(summary["step_seconds_p50"], paced + 0.2);
    EXPECT_GE(least_own_time(folder, 1), paced + 0.2);
    EXPECT_GE(least_own_time(folder, 0), paced);
    EXPECT_LT(least_own_time(folder, 0), 0.2);
  }
}

// Worker 0 is ahead and waits at evaluations with a clock that stands: what they are said to have
// taken is the time of the slowest.
TEST(TrainCommand, EvaluationsCountTheTimeOfTheSlowest) {
  const TemporaryFolder temporary;
  const json summary =
      train("train", "-n 2 --algorithm eager-solo --delay rank:1:0.1 --eval-every 10",
            temporary.path() / "run", 2, 20);
  ASSERT_TRUE(summary.is_object());
  EXPECT_GE(summary["evaluations"][0]["train_seconds"], 10 * 0.1);
  EXPECT_GE(summary["evaluations"][1]["train_seconds"], 20 * 0.1);
}

// Of 4 workers' first step and 3 workers' first step the number is the same.
TEST(TrainCommand, AnotherNumberOfWorkersGoesOnInAFolderOfItsOwn) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "run";
  train("train", "-n 4 --algorithm all-reduce --checkpoint-every 1", folder, 4, 1);
  const std::string before = text_of(folder / "summary.json");
  const Output result =
      run(fmt::format("train images -n 3 --resume '{}' --steps 2 --json", folder.string()));
  ASSERT_EQ(result.code, 0) << result.err;
  const json summary = json::parse(result.out);
  EXPECT_EQ(summary["resumed_from"], 1);
  EXPECT_NE(fs::path(summary["folder"].get<std::string>()).lexically_normal(), folder);
  EXPECT_EQ(text_of(folder / "summary.json"), before);
  fs::remove_all(summary["folder"].get<std::string>());
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
          EXPECT_THROW(FolderLock{folder}, Error);
          kill(workers[victim], SIGKILL);
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          EXPECT_THROW(FolderLock{folder}, Error);  // whoever is left holds it
        });
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(has(result.err, "was killed by signal 9 (SIGKILL); the other 2 finished without"))
        << result.err;
    ASSERT_TRUE(fs::exists(folder / "summary.json")) << result.err;
    const json summary = json::parse(text_of(folder / "summary.json"));
    EXPECT_EQ(summary["workers_left"], 2);
    EXPECT_EQ(summary["lost"].size(), 1);
    EXPECT_NO_THROW(FolderLock{folder});
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
