// Runs that are killed and go on: real workers, killed with SIGKILL at drawn moments, one of them
// or all, resumed until they are done, have the result of a run that nobody disturbed.
// STARLING_KILLS says how often each is killed (default 2).
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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

constexpr int kSteps = 60;

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

// Of the files that everybody needs to go on, after the last step.
std::vector<std::string> digests_of(const fs::path& run, int steps = kSteps) {
  std::vector<std::string> digests;
  const fs::path folder = run / "checkpoints" / fmt::format("step-{:010}", steps);
  for (const json& file : json::parse(text_of(folder / "manifest.json")).at("files")) {
    digests.push_back(file.at("name").get<std::string>() + " " +
                      file.at("sha256").get<std::string>());
  }
  return digests;
}

// A while after there are workers, or after they have begun to train.
struct Blow {
  bool all = false;
  bool into_start_up = false;
  std::chrono::milliseconds after{0};
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
    const auto written = fs::last_write_time(folder / "config.json", error);
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

Output run_under(const std::string& arguments, const fs::path& folder, const Blow& blow) {
  std::atomic<bool> over = false;
  std::future<void> striking = std::async(std::launch::async, [&] { strike(folder, blow, over); });
  const Output result = run(arguments);
  over = true;
  striking.get();
  return result;
}

// Of a name, the same everywhere: FNV-1a.
std::uint64_t seed_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

// Training takes 1.8 s at least. The first blow falls before it can be over; the second when there
// is a checkpoint, unless it was over before.
std::uint64_t moment(int life, RandomSequence& draw) {
  return life == 0 ? draw.below(1200) : life == 1 ? 1000 + draw.below(800) : draw.below(2000);
}

json summary_of(const Output& result) {
  json summary = json::parse(result.out, nullptr, false);
  EXPECT_TRUE(summary.is_object()) << result.out << result.err;
  return summary;
}

class KilledRow : public testing::TestWithParam<const char*> {};

TEST_P(KilledRow, RunsEndAsIfNobodyHadDisturbedThem) {
  const TemporaryFolder temporary;
  // Steps long enough that blows fall everywhere: into start-up, steps, and writing.
  const std::string training = fmt::format(
      "train images -n 4 --algorithm {} --batch 16 --steps {} --checkpoint-every 7 --keep 2 "
      "--eval-every 20 --on-loss stop --delay ramp:0.01 --json",
      GetParam(), kSteps);
  const fs::path undisturbed = temporary.path() / "undisturbed";
  const Output straight = run(fmt::format("{} --out '{}'", training, undisturbed.string()));
  ASSERT_EQ(straight.code, 0) << straight.err;
  const json wanted = summary_of(straight);

  const char* times = std::getenv("STARLING_KILLS");
  const int kills = times == nullptr ? 2 : std::stoi(times);
  RandomSequence draw{Random(seed_of(GetParam()))};
  const fs::path folder = temporary.path() / "killed";
  Output result;
  int struck = 0;
  int complete = 0;
  for (int life = 0; life < kills; ++life) {
    const bool begun = fs::exists(folder / "checkpoints") &&
                       run(fmt::format("checkpoint list '{}'", folder.string())).code == 0;
    if (!begun) {
      fs::remove_all(folder);
    } else {
      ++complete;
      const Output verified = run(fmt::format("checkpoint verify '{}'", folder.string()));
      ASSERT_EQ(verified.code, 0) << verified.out << verified.err;
    }
    const std::string arguments =
        begun ? fmt::format("train images --resume '{}' --on-loss stop --json", folder.string())
              : fmt::format("{} --out '{}'", training, folder.string());
    const Blow blow{.all = life % 2 == 0,
                    .into_start_up = life % 4 == 3,
                    .after = std::chrono::milliseconds(moment(life, draw))};
    result = run_under(arguments, folder, blow);
    struck += result.code == 0 ? 0 : 1;
  }
  const bool begun = run(fmt::format("checkpoint list '{}'", folder.string())).code == 0;
  if (!begun) {
    fs::remove_all(folder);
  }
  result = run(begun ? fmt::format("train images --resume '{}' --json", folder.string())
                     : fmt::format("{} --out '{}'", training, folder.string()));
  ASSERT_EQ(result.code, 0) << result.err;
  const json summary = summary_of(result);
  fmt::print("{}: {} blows, {} of them fatal, {} lives went on from a checkpoint\n", GetParam(),
             kills, struck, complete + (begun ? 1 : 0));
  EXPECT_GE(struck, 1);
  EXPECT_GE(complete + (begun ? 1 : 0), kills < 4 ? 0 : 1);

  EXPECT_EQ(summary.at("test_loss"), wanted.at("test_loss"));
  EXPECT_EQ(summary.at("test_accuracy"), wanted.at("test_accuracy"));
  EXPECT_EQ(summary.at("train_loss"), wanted.at("train_loss"));
  EXPECT_EQ(digests_of(folder), digests_of(undisturbed));
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
  const fs::path folder = run_of_four();
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

}  // namespace
}  // namespace starling::tool
