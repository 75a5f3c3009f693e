// Runs that are killed and go on: real workers, killed with SIGKILL at drawn moments, one of them
// or all, resumed until they are done, have the result of a run that nobody disturbed.
// STARLING_KILLS says how often each is killed (1 or more, default 2).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "starling/base/folder_lock.h"
#include "starling/base/random.h"
#include "tests/tool/tool.h"
#include "tests/workload/temporary.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using workload::TemporaryFolder;
using Clock = std::chrono::steady_clock;

// Worker 3 sleeps 30 ms in each step, so a life has at most 17 of them when its blow falls; the
// first one 27, for there is a checkpoint before its 11th. All together are not the whole run.
constexpr int kStepsPerLife = 30;
constexpr int kCheckpointEvery = 5;
constexpr std::uint64_t kLatestBlow = 500;  // ms

// The word --check, as it lies in a list of arguments.
const std::string kCheck = std::string(1, '\0') + "--check" + std::string(1, '\0');

// Processes of the program, those of the run in `folder`.
std::vector<pid_t> workers_of(const fs::path& folder) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string command = text_of(entry.path() / "cmdline");
    if (command.starts_with(STARLING_TRAIN) && has(command, folder.string()) &&
        !has(command, kCheck)) {
      found.push_back(std::stoi(entry.path().filename().string()));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::size_t steps_in(const fs::path& metrics) {
  const std::string text = text_of(metrics);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

fs::path checkpoint_of(const fs::path& run, int step) {
  return run / "checkpoints" / fmt::format("step-{:010}", step);
}

// Of the files that everybody needs to go on, after the last step.
std::vector<std::string> digests_of(const fs::path& run, int steps) {
  std::vector<std::string> digests;
  const fs::path folder = checkpoint_of(run, steps);
  for (const json& file : json::parse(text_of(folder / "manifest.json")).at("files")) {
    digests.push_back(file.at("name").get<std::string>() + " " +
                      file.at("sha256").get<std::string>());
  }
  return digests;
}

// Until there is such a file, or the job is over.
void await(const fs::path& file, const std::atomic<bool>& over) {
  std::error_code error;
  while (!over && !fs::exists(file, error)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// A while after there are workers, or after they have written a file: by default when they begin to
// train.
struct Blow {
  bool all = false;
  bool into_start_up = false;
  std::chrono::milliseconds after{0};
  std::string file = "config.json";
};
void strike(const fs::path& folder, const Blow& blow, const std::atomic<bool>& over) {
  const auto start = fs::file_time_type::clock::now();
  std::vector<pid_t> workers;
  while (workers.size() < 4 && !over) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    workers = workers_of(folder);
  }
  const auto began = [&] {
    std::error_code error;
    const auto written = fs::last_write_time(folder / blow.file, error);
    return !error && written > start;
  };
  while (!blow.into_start_up && !over && !began()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto until = Clock::now() + blow.after;
  while (Clock::now() < until && !over) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const pid_t worker : over ? std::vector<pid_t>() : workers) {
    if (blow.all || worker == workers[static_cast<std::size_t>(blow.after.count()) % 4]) {
      kill(worker, SIGKILL);
    }
  }
}

using Act = std::function<void(const std::atomic<bool>& over)>;
Output run_beside(const std::string& arguments, const Act& act) {
  std::atomic<bool> over = false;
  std::future<void> acting = std::async(std::launch::async, [&] { act(over); });
  const Output result = run(arguments);
  over = true;
  acting.get();
  return result;
}

Output run_under(const std::string& arguments, const fs::path& folder, const Blow& blow) {
  return run_beside(arguments, [&](const std::atomic<bool>& over) { strike(folder, blow, over); });
}

// Of a name, the same everywhere: FNV-1a.
std::uint64_t seed_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

int kills_of_each() {
  const char* times = std::getenv("STARLING_KILLS");
  return times == nullptr ? 2 : std::max(1, std::stoi(times));
}

json summary_of(const Output& result) {
  json summary = json::parse(result.out, nullptr, false);
  EXPECT_TRUE(summary.is_object()) << result.out << result.err;
  return summary;
}

class KilledRow : public testing::TestWithParam<const char*> {};

TEST_P(KilledRow, RunsEndAsIfNobodyHadDisturbedThem) {
  const TemporaryFolder temporary;
  const int kills = kills_of_each();
  const int steps = kStepsPerLife * kills;
  // Steps long enough that blows fall everywhere: into start-up, steps, and writing.
  const std::string training = fmt::format(
      "train images -n 4 --algorithm {} --batch 16 --steps {} --checkpoint-every {} --keep 2 "
      "--eval-every {} --on-loss stop --delay ramp:0.01 --json",
      GetParam(), steps, kCheckpointEvery, steps / 3);
  const fs::path undisturbed = temporary.path() / "undisturbed";
  const Output straight = run(fmt::format("{} --out '{}'", training, undisturbed.string()));
  ASSERT_EQ(straight.code, 0) << straight.err;
  const json wanted = summary_of(straight);

  RandomSequence draw{Random(seed_of(GetParam()))};
  const fs::path folder = temporary.path() / "killed";
  const std::string begin = fmt::format("{} --out '{}'", training, folder.string());
  const std::string go_on =
      fmt::format("train images --resume '{}' --on-loss stop --json", folder.string());
  // The first life is not struck before there is something to go on from.
  const std::string first = checkpoint_of("", kCheckpointEvery).string();
  for (int life = 0; life < kills; ++life) {
    SCOPED_TRACE(life);
    const Blow blow{.all = life % 2 == 0,
                    .into_start_up = life % 4 == 1,
                    .after = std::chrono::milliseconds(draw.below(kLatestBlow)),
                    .file = life == 0 ? first : "config.json"};
    const Output struck = run_under(life == 0 ? begin : go_on, folder, blow);
    // Of who fails first, and nobody else: a life that ends otherwise has another line there.
    ASSERT_TRUE(has(struck.err, "was killed by signal 9 (SIGKILL)")) << struck.err;
    const Output verified = run(fmt::format("checkpoint verify '{}'", folder.string()));
    ASSERT_EQ(verified.code, 0) << verified.out << verified.err;
  }
  const Output result = run(go_on);
  ASSERT_EQ(result.code, 0) << result.err;
  const json summary = summary_of(result);
  EXPECT_GE(summary.at("resumed_from").get<int>(), kCheckpointEvery);

  EXPECT_EQ(summary.at("test_loss"), wanted.at("test_loss"));
  EXPECT_EQ(summary.at("test_accuracy"), wanted.at("test_accuracy"));
  EXPECT_EQ(summary.at("train_loss"), wanted.at("train_loss"));
  EXPECT_EQ(digests_of(folder, steps), digests_of(undisturbed, steps));
  ASSERT_EQ(summary.at("evaluations").size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(summary["evaluations"][i]["step"], wanted["evaluations"][i]["step"]);
    EXPECT_EQ(summary["evaluations"][i]["test_loss"], wanted["evaluations"][i]["test_loss"]);
  }
  for (int rank = 0; rank < 4; ++rank) {
    const std::string name = fmt::format("metrics-{}.jsonl", rank);
    EXPECT_EQ(steps_in(folder / name), steps_in(undisturbed / name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Resume, KilledRow, testing::Values("all-reduce", "accum-adam"),
                         [](const testing::TestParamInfo<const char*>& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Three of four come to the end, and others go on from there.
TEST(Killed, AloneAWorkerIsMissingInTheCheckpointsOfTheOthers) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "run";
  const Blow blow{.all = false, .into_start_up = false, .after = std::chrono::milliseconds(401)};
  const Output lost = run_under(
      fmt::format("train images -n 4 --algorithm all-reduce --batch 16 --steps 40 "
                  "--checkpoint-every 15 --delay ramp:0.01 --no-evaluation --out '{}' --json",
                  folder.string()),
      folder, blow);
  ASSERT_EQ(lost.code, 0) << lost.err;
  const json ended = summary_of(lost);
  EXPECT_EQ(ended.at("workers_left"), 3);
  const fs::path last = folder / "checkpoints" / "step-0000000040";
  const json manifest = json::parse(text_of(last / "manifest.json"));
  EXPECT_EQ(manifest.at("ranks").size(), 3U);
  EXPECT_EQ(std::count(manifest["ranks"].begin(), manifest["ranks"].end(), ended["lost"][0]), 0);
  EXPECT_EQ(manifest.at("workers"), 4);
  for (const int workers : {3, 4}) {
    SCOPED_TRACE(workers);
    const Output result = run(
        fmt::format("train images --resume '{}' -n {} --steps 60 --out '{}' --json", last.string(),
                    workers, (temporary.path() / "on").string() + "-" + std::to_string(workers)));
    ASSERT_EQ(result.code, 0) << result.err;
    const json summary = summary_of(result);
    EXPECT_EQ(summary.at("workers_left"), workers);
    EXPECT_EQ(summary.at("resumed_from"), workers == 4 ? 40 : 53);
    EXPECT_EQ(summary.at("steps"), 60);
  }
}

pid_t leader_of(const fs::path& folder) {
  const std::string rank = "STARLING_RANK=0" + std::string(1, '\0');
  for (const pid_t worker : workers_of(folder)) {
    if (has(text_of(fmt::format("/proc/{}/environ", worker)), rank)) {
      return worker;
    }
  }
  return 0;
}

// A leader that is lost while it writes the last checkpoint: whoever leads then says that it is
// missing, and knows of those before.
TEST(Killed, ALeaderLeavesTheLastCheckpointIncomplete) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "run";
  const fs::path partial = checkpoint_of(folder, 20).string() + ".partial";
  const Output result = run_beside(
      fmt::format("train images -n 3 --algorithm all-reduce --batch 16 --steps 20 --keep 1 "
                  "--checkpoint-every 5 --delay ramp:0.01 --no-evaluation --out '{}' --json",
                  folder.string()),
      [&](const std::atomic<bool>& over) {
        await(folder / "config.json", over);
        fs::create_directories(partial);
        // To write there the leader waits for a reader, who does not come.
        EXPECT_EQ(mkfifo((partial / "consensus.safetensors.part").c_str(), 0600), 0);
        await(partial / "worker-1.json", over);
        const pid_t leader = over ? 0 : leader_of(folder);
        EXPECT_NE(leader, 0);
        if (leader != 0) {
          kill(leader, SIGKILL);
        }
      });
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "checkpoint of step 20 is incomplete")) << result.err;
  const json summary = summary_of(result);
  EXPECT_EQ(summary.at("lost"), std::vector<int>{0});
  EXPECT_EQ(summary.at("checkpoints"), 3);
  EXPECT_FALSE(fs::exists(partial));
  EXPECT_TRUE(fs::exists(checkpoint_of(folder, 15) / "manifest.json"));
}

// A run of 4 workers, made once.
const fs::path& run_of_four() {
  static const TemporaryFolder temporary;
  static const fs::path folder = [] {
    fs::path made = temporary.path() / "four";
    const Output result = run(fmt::format(
        "train images -n 4 --algorithm dadam --steps 40 --checkpoint-every 15 --out '{}'",
        made.string()));
    EXPECT_EQ(result.code, 0) << result.err;
    return made;
  }();
  return folder;
}

TEST(Resume, GoesOnWithAnotherNumberOfWorkers) {
  const TemporaryFolder temporary;
  for (const int workers : {3, 8}) {
    const fs::path out = temporary.path() / fmt::format("{}", workers);
    const Output result =
        run(fmt::format("train images --resume '{}/checkpoints/step-0000000030' -n {} --steps 60 "
                        "--algorithm d-adam --out '{}' --json",
                        run_of_four().string(), workers, out.string()));
    ASSERT_EQ(result.code, 0) << result.err;
    const json summary = json::parse(result.out);
    EXPECT_EQ(summary["workers"], workers);
    EXPECT_EQ(summary["resumed_from"], workers == 3 ? 40 : 15);
    EXPECT_EQ(summary["algorithm"], "dadam");
    EXPECT_LT(
        summary["test_loss"],
        json::parse(text_of(run_of_four() / "summary.json")).at("test_loss").get<double>() + 0.05);
  }
}

// A run of 2 workers that has ended after 20 steps, on as many.
void expect_goes_on_in_place(const fs::path& folder) {
  const Output result =
      run(fmt::format("train images --resume '{}' --steps 30 --json", folder.string()));
  ASSERT_EQ(result.code, 0) << result.err;
  const json summary = json::parse(result.out);
  EXPECT_EQ(summary["folder"], folder.string());
  EXPECT_EQ(summary["resumed_from"], 20);
  EXPECT_EQ(summary["workers_left"], 2);
  EXPECT_EQ(summary["files_lost"], json::array());
  EXPECT_LT(summary["test_loss"].get<double>(), 2.2);  // guessing has 2.3
  for (const char* metrics : {"metrics-0.jsonl", "metrics-1.jsonl"}) {
    EXPECT_EQ(steps_in(folder / metrics), 32U);  // and two evaluations
  }
  EXPECT_TRUE(fs::exists(folder / "checkpoints" / "step-0000000030"));
}

// One row of each kind beside dadam: groups and syncs, push-sum, held models, late gradients.
TEST(Resume, GoesOnWithAnotherNumberOfWorkersByEveryKindOfRowAndWithAsMany) {
  const TemporaryFolder temporary;
  for (const char* row : {"wagma", "sgp", "starling", "eager-solo"}) {
    SCOPED_TRACE(row);
    const std::string two = (temporary.path() / row).string();
    const Output first = run(fmt::format(
        "train images -n 2 --algorithm {} --steps 20 --checkpoint-every 20 --out '{}'", row, two));
    ASSERT_EQ(first.code, 0) << first.err;
    const Output result =
        run(fmt::format("train images --resume '{0}' -n 3 --steps 20 --checkpoint-every 0 --out "
                        "'{0}-of-three' --json",
                        two));
    ASSERT_EQ(result.code, 0) << result.err;
    const json summary = json::parse(result.out);
    EXPECT_EQ(summary["workers_left"], 3);
    EXPECT_EQ(summary["resumed_from"], 13);
    EXPECT_EQ(summary["algorithm"].get<std::string>(), row);
    EXPECT_LT(summary["test_loss"].get<double>(), 2.2);  // guessing has 2.3
  }
  for (const char* row : {"wagma", "starling"}) {
    SCOPED_TRACE(row);
    expect_goes_on_in_place(temporary.path() / row);
  }
}

// What makes no sense for fewer workers may be another.
TEST(Resume, OnFewerWorkersTheTriggerMayBeAnother) {
  const TemporaryFolder temporary;
  const std::string three = (temporary.path() / "three").string();
  const Output first =
      run(fmt::format("train images -n 3 --algorithm wagma --trigger quorum:3 --steps 6 "
                      "--checkpoint-every 6 --no-evaluation --out '{}'",
                      three));
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string on = fmt::format(
      "train images --resume '{0}' -n 2 --steps 12 --no-evaluation --out '{0}-on' ", three);
  expect_refused(on, {"quorum:3", "the job has 2 workers"});
  const Output result = run(on + "--trigger quorum:2");
  EXPECT_EQ(result.code, 0) << result.err;
}

using Files = std::map<std::string, fs::file_time_type>;
Files files_of(const fs::path& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    files[entry.path().string()] = entry.last_write_time();
  }
  return files;
}

// Two would write into the same files.
TEST(Resume, IsRefusedWhereAnotherRunIsGoingOn) {
  const fs::path& folder = run_of_four();
  const FolderLock lock(folder);
  const Files before = files_of(folder);
  expect_refused(fmt::format("train images --resume '{}' --steps 50", folder.string()),
                 {"another run is going on in " + folder.string()});
  EXPECT_TRUE(files_of(folder) == before);
}

// Nothing but json and struct: the consensus is the mean of what the workers have.
TEST(Checkpointing, AnIndependentReaderFindsTheMeanOfTheWorkers) {
  const TemporaryFolder temporary;
  const std::string reader = R"(
import json, struct, sys
def read(name):
    data = open(sys.argv[1] + '/' + name, 'rb').read()
    size, = struct.unpack('<Q', data[:8])
    head = json.loads(data[8:8 + size])
    tensors = {}
    for name, t in head.items():
        if name != '__metadata__' and t['dtype'] == 'F32':
            begin, end = t['data_offsets']
            bytes = data[8 + size + begin:8 + size + end]
            tensors[name] = struct.unpack('<%df' % (len(bytes) // 4), bytes)
    return tensors
workers = [read('worker-%d.safetensors' % rank) for rank in range(4)]
consensus = read('consensus.safetensors')
assert sorted('parameter/' + n for n in consensus) == sorted(
    n for n in workers[0] if n.startswith('parameter/'))
off = apart = 0
for name, mean in consensus.items():
    for m, *own in zip(mean, *(w['parameter/' + name] for w in workers)):
        off = max(off, abs(m - sum(own) / 4))
        apart = max(apart, max(own) - min(own))
print(len(consensus), off < 1e-6, apart > 1e-4)
)";
  const fs::path script = temporary.path() / "reader.py";
  const fs::path said = temporary.path() / "said";
  std::ofstream(script) << reader;
  const std::string command =
      fmt::format("python3 '{}' '{}' >'{}' 2>&1", script.string(),
                  (run_of_four() / "checkpoints" / "step-0000000030").string(), said.string());
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(text_of(said), "6 True True\n");
}

// Its steps have other numbers than those of the run: 30 of 40 steps on 4 workers are 60 of 80.
TEST(Resume, OnAnotherNumberOfWorkersGoesOnInAFolderOfItsOwn) {
  const TemporaryFolder here;
  const fs::path from = run_of_four() / "checkpoints" / "step-0000000030";
  const Files before = files_of(run_of_four());
  const std::string command =
      fmt::format("cd '{}' && '{}' train images --resume '{}' -n 2 --no-evaluation >said 2>&1",
                  here.path().string(), STARLING_TOOL, from.string());
  const int status = std::system(command.c_str());
  const std::string said = text_of(here.path() / "said");
  ASSERT_EQ(status, 0) << said;
  EXPECT_TRUE(files_of(run_of_four()) == before);
  EXPECT_TRUE(has(said, fmt::format("goes on after step 60, from {}, in runs/", from.string())))
      << said;
  const std::vector<fs::directory_entry> made(fs::directory_iterator(here.path() / "runs"),
                                              fs::directory_iterator{});
  ASSERT_EQ(made.size(), 1U);
  const fs::path folder = made.front().path();
  const json summary = json::parse(text_of(folder / "summary.json"));
  EXPECT_EQ(summary["steps"], 80);
  EXPECT_EQ(summary["resumed_from"], 60);
  for (const char* step : {"step-0000000075", "step-0000000080"}) {
    const json manifest = json::parse(text_of(folder / "checkpoints" / step / "manifest.json"));
    EXPECT_EQ(manifest["workers"], 2) << step;
    EXPECT_EQ(manifest["configuration"]["steps"], 80) << step;
  }
}

// An evaluation comes before the checkpoint of its step.
TEST(Resume, EvaluationsCountTheSecondsOfAllParts) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "run";
  const auto checkpoint = [&](int step) {
    return folder / "checkpoints" / fmt::format("step-{:010}", step);
  };
  Output result =
      run(fmt::format("train images -n 2 --algorithm all-reduce --steps 12 --eval-every 4 "
                      "--checkpoint-every 4 --out '{}'",
                      folder.string()));
  ASSERT_EQ(result.code, 0) << result.err;
  for (const int step : {4, 8}) {
    result = run(fmt::format("train images --resume '{}' --json", checkpoint(step).string()));
    ASSERT_EQ(result.code, 0) << result.err;
  }
  const json evaluations = json::parse(result.out)["evaluations"];
  ASSERT_EQ(evaluations.size(), 3U);
  const auto evaluated = [&](std::size_t i) {
    return evaluations[i].at("train_seconds").get<double>();
  };
  const auto saved = [&](int step) {
    return json::parse(text_of(checkpoint(step) / "manifest.json"))
        .at("train_seconds")
        .get<double>();
  };
  EXPECT_LE(evaluated(0), saved(4));
  EXPECT_LT(saved(4), evaluated(1));
  EXPECT_LE(evaluated(1), saved(8));
  EXPECT_LT(saved(8), evaluated(2));
}

TEST(Resume, RefusesInOneLine) {
  const std::string four = run_of_four().string();
  const TemporaryFolder empty;
  const TemporaryFolder killed;
  const std::string partial = (killed.path() / "checkpoints" / "step-0000000020.partial").string();
  fs::create_directories(killed.path() / "checkpoints");
  fs::copy(run_of_four() / "checkpoints" / "step-0000000030", partial);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"--resume /nowhere", "there is no folder /nowhere"},
      {fmt::format("--resume '{}'", empty.path().string()), "there is no complete checkpoint in"},
      {fmt::format("--resume '{}' --model cnn", four), "--model: the run that is resumed has mlp"},
      {fmt::format("--resume '{}' --steps 20", four), "has taken 40 already"},
      {fmt::format("--resume '{}' --steps 50", partial),
       "step-0000000020.partial is not complete: whoever wrote it was killed; no other checkpoint"},
  };
  for (const auto& [arguments, part] : wrong) {
    SCOPED_TRACE(arguments);
    const Output result = run("train images " + arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_TRUE(has(result.err, part)) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(Resume, NamesADamagedFileAndTheNewestGoodCheckpoint) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "run";
  fs::copy(run_of_four(), folder, fs::copy_options::recursive);
  const fs::path damaged = folder / "checkpoints" / "step-0000000040" / "worker-2.safetensors";
  fs::resize_file(damaged, fs::file_size(damaged) - 1);
  const Output result = run(fmt::format("train images --resume '{}' --steps 50", folder.string()));
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, damaged.string() + " is torn")) << result.err;
  EXPECT_TRUE(has(result.err, "the newest good checkpoint is")) << result.err;
  EXPECT_TRUE(has(result.err, "step-0000000030")) << result.err;

  const Output verified = run(fmt::format("checkpoint verify '{}' --json", folder.string()));
  EXPECT_EQ(verified.code, 1);
  const json found = json::parse(verified.out);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1]["whole"], true);
  EXPECT_EQ(found[2]["whole"], false);
  // A worker that nobody asked before it was started says the same.
  const Output job = run(fmt::format("run -n 4 --no-prefix -- {} images --resume '{}' --steps 50",
                                     STARLING_TRAIN, folder.string()));
  EXPECT_NE(job.code, 0);
  EXPECT_TRUE(has(job.err, damaged.string() + " is torn")) << job.err;

  const fs::path manifest = damaged.parent_path() / "manifest.json";
  fs::resize_file(manifest, fs::file_size(manifest) - 5);
  const Output torn = run(fmt::format("train images --resume '{}' --steps 50", folder.string()));
  EXPECT_EQ(torn.code, 2);
  EXPECT_TRUE(has(torn.err, manifest.string() + " is torn or altered")) << torn.err;
  EXPECT_TRUE(has(torn.err, "the newest good checkpoint is")) << torn.err;
}

TEST(CheckpointCommand, ListsVerifiesAndExports) {
  const std::string four = run_of_four().string();
  const Output listed = run(fmt::format("checkpoint list '{}' --json", four));
  ASSERT_EQ(listed.code, 0) << listed.err;
  const json rows = json::parse(listed.out);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["step"], 15);
  EXPECT_EQ(rows[2]["step"], 40);
  EXPECT_EQ(rows[2]["workers"], 4);
  EXPECT_TRUE(has(run(fmt::format("checkpoint list '{}'", four)).out, "step 15"));
  const Output verified = run(fmt::format("checkpoint verify '{}'", four));
  EXPECT_EQ(verified.code, 0) << verified.out;
  const TemporaryFolder temporary;
  const std::string file = (temporary.path() / "model.safetensors").string();
  const Output exported =
      run(fmt::format("checkpoint export '{}/checkpoints/step-0000000030' --out '{}'", four, file));
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(text_of(file),
            text_of(fs::path(four) / "checkpoints" / "step-0000000030" / "consensus.safetensors"));
  EXPECT_EQ(run(fmt::format("checkpoint export '{}' --out '{}'", four, file)).code, 2);
  EXPECT_EQ(run("checkpoint list /nowhere").code, 2);
  EXPECT_TRUE(has(run("checkpoint --help").out, "verify"));
}

TEST(CheckpointCommand, ListsTheOthersBesideABrokenManifest) {
  const TemporaryFolder temporary;
  for (const char* step : {"step-0000000015", "step-0000000030", "step-0000000040"}) {
    const fs::path folder = temporary.path() / "checkpoints" / step;
    fs::create_directories(folder);
    fs::copy(run_of_four() / "checkpoints" / step / "manifest.json", folder / "manifest.json");
  }
  const fs::path broken = temporary.path() / "checkpoints" / "step-0000000030" / "manifest.json";
  fs::resize_file(broken, 100);
  const Output listed = run(fmt::format("checkpoint list '{}' --json", temporary.path().string()));
  ASSERT_EQ(listed.code, 0) << listed.err;
  const json rows = json::parse(listed.out);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["step"], 15);
  EXPECT_EQ(rows[1]["fault"], broken.string() + " is torn or altered: it is not a manifest");
  EXPECT_EQ(rows[2]["step"], 40);
}

// A disk with room for metrics, but not for a checkpoint.
TEST(Checkpointing, OnAFullDiskTrainingGoesOn) {
  const TemporaryFolder folder;
  const std::string disk = folder.path().string();
  const std::string said = disk + ".said";
  const std::string command = fmt::format(
      "unshare -m sh -c \"mount -t tmpfs -o size=3m none '{0}' && '{1}' train images -n 2 --steps "
      "12 --no-evaluation --checkpoint-every 5 --out '{0}/run' --json && ls '{0}/run/checkpoints' "
      "&& cat '{0}/run/summary.json'\" >'{2}' 2>&1",
      disk, STARLING_TOOL, said);
  const int status = std::system(command.c_str());
  const std::string output = text_of(said);
  fs::remove(said);
  EXPECT_EQ(WEXITSTATUS(status), 0) << output;
  for (const int step : {5, 10, 12}) {
    EXPECT_TRUE(has(output, fmt::format("checkpoint of step {} was dropped: cannot write ", step)))
        << output;
  }
  EXPECT_TRUE(has(output, "No space left on device; training goes on")) << output;
  EXPECT_TRUE(has(output, "\"checkpoints\": 0")) << output;
  EXPECT_FALSE(has(output, "\nstep-00")) << output;
}

// Its log has filled the disk: there is no room for metrics, checkpoints and complaints.
TEST(Checkpointing, OnADiskThatItsLogHasFilledTrainingGoesOn) {
  const TemporaryFolder temporary;
  const fs::path disk = temporary.path() / "disk";
  const fs::path script = temporary.path() / "script";
  const fs::path said = temporary.path() / "said";
  fs::create_directory(disk);
  std::ofstream(script) << R"(
mount -t tmpfs -o size=3m none "$1" || exit 9
"$2" train images -n 2 --steps 12 --no-evaluation --checkpoint-every 5 --delay rank:1:0.05 \
  --out "$1/run" --json >"$3" 2>>"$1/log" &
while [ ! -e "$1/run/config.json" ] && kill -0 $! 2>/dev/null; do sleep 0.01; done
cat /dev/zero >>"$1/log" 2>/dev/null
wait $!
)";
  const std::string command = fmt::format("unshare -m sh '{}' '{}' '{}' '{}'", script.string(),
                                          disk.string(), STARLING_TOOL, said.string());
  const int status = std::system(command.c_str());
  const std::string output = text_of(said);
  EXPECT_EQ(WEXITSTATUS(status), 1) << output;  // there is no room for the summary either
  const json summary = json::parse(output, nullptr, false);
  ASSERT_TRUE(summary.is_object()) << output;
  EXPECT_EQ(summary["steps"], 12);
  EXPECT_EQ(summary["workers_left"], 2);
  EXPECT_EQ(summary["checkpoints"], 0);
  EXPECT_FALSE(summary["files_lost"].empty());
}

}  // namespace
}  // namespace starling::tool
