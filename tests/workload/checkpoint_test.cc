// Checkpoints as files: what is written is what is read, by an independent reader too; what is
// torn, altered or missing is named; and they are complete or not there.
#include "starling/workload/checkpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>

#include "starling/comm/plan.h"
#include "starling/workload/checkpoint_writer.h"
#include "starling/workload/checkpointing.h"
#include "starling/workload/images_options.h"
#include "starling/workload/program.h"
#include "starling/workload/resume.h"
#include "starling/workload/run_folder.h"
#include "tests/workload/temporary.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using train::State;
using train::Stored;

template <typename T>
Stored stored(const std::string& name, const std::string& type,
              const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {.name = name, .type = type, .shape = shape, .bytes = {bytes.begin(), bytes.end()}};
}

State some_state(std::uint64_t step, float value = 1.5F) {
  State state;
  state.step = step;
  state.samples = static_cast<double>(step) * 20;
  state.push_weight = 0.1 + 0.2;
  state.previous_norm = std::numeric_limits<double>::denorm_min();
  state.order = {"fc.weight", "odd \"name\"\n"};
  state.taken = {{"fc.weight", 7}, {"odd \"name\"\n", 3}};
  state.tensors = {
      stored<std::uint8_t>("random/cpu", "U8", {3}, {1, 2, 3}),
      stored<float>("parameter/fc.weight", "F32", {2, 3}, {value, -2, 0.25F, 4, 5, -0.0F}),
      stored<double>("parameter/odd \"name\"\n", "F64", {}, {std::acos(-1.0)}),
      stored<std::int64_t>("buffer/count", "I64", {1}, {std::int64_t{1} << 40}),
      stored<float>("buffer/nothing", "F32", {0, 4}, {}),
      stored<std::uint16_t>("buffer/half", "BF16", {1}, {0x3fc0}),
      stored<float>("optimizer/momentum/fc.weight", "F32", {2, 3}, {1, 2, 3, 4, 5, value})};
  return state;
}

std::vector<std::byte> bytes_of(const Packed& packed) {
  std::vector<std::byte> bytes;
  for (const auto& piece : packed.pieces()) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  return bytes;
}

void expect_same(const State& a, const State& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.push_weight, b.push_weight);
  EXPECT_EQ(a.previous_norm, b.previous_norm);
  EXPECT_EQ(a.order, b.order);
  EXPECT_EQ(a.taken, b.taken);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const Stored& tensor : a.tensors) {
    const Stored* other = b.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(tensor.type, other->type);
    EXPECT_EQ(tensor.shape, other->shape);
    EXPECT_EQ(tensor.bytes, other->bytes) << tensor.name;
  }
}

TEST(Safetensors, WhatIsReadIsWhatWasWritten) {
  const State state = some_state(12);
  expect_same(state_of(unpack(bytes_of(pack(state)))), state);
  const State empty;
  expect_same(state_of(unpack(bytes_of(pack(empty)))), empty);
}

// Nothing but json and struct: offsets begin at 0, leave no hole and are aligned.
TEST(Safetensors, AnIndependentReaderReadsThem) {
  const TemporaryFolder folder;
  const State state = some_state(12);
  write_durably(folder.path() / "a.safetensors", pack(state).pieces());
  const std::string reader = R"(
import json, struct, sys
data = open(sys.argv[1], 'rb').read()
size, = struct.unpack('<Q', data[:8])
assert size % 8 == 0
head = json.loads(data[8:8 + size])
meta = head.pop('__metadata__')
assert all(isinstance(v, str) for v in meta.values())
sizes = {'F64': 8, 'F32': 4, 'I64': 8, 'U8': 1, 'BF16': 2}
at = 0
for name, t in sorted(head.items(), key=lambda item: item[1]['data_offsets']):
    begin, end = t['data_offsets']
    count = 1
    for n in t['shape']: count *= n
    assert begin == at and end - begin == count * sizes[t['dtype']] and begin % sizes[t['dtype']] == 0
    at = end
assert at == len(data) - 8 - size
def values(name, code):
    b, e = head[name]['data_offsets']
    return [v for v, in struct.iter_unpack('<' + code, data[8 + size + b:8 + size + e])]
print(values('parameter/fc.weight', 'f'), head['parameter/fc.weight']['shape'])
print(values('buffer/count', 'q'), values('random/cpu', 'B'), meta['step'], float(meta['push_weight']) == 0.1 + 0.2)
)";
  const auto ended = run_program(
      {"python3", "-c", reader, (folder.path() / "a.safetensors").string()}, folder.path());
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->code, 0);
  EXPECT_EQ(ended->output,
            "[1.5, -2.0, 0.25, 4.0, 5.0, -0.0] [2, 3]\n[1099511627776] [1, 2, 3] 12 True\n");
}

TEST(Safetensors, WhatIsTornIsRefused) {
  const std::vector<std::byte> whole = bytes_of(pack(some_state(12)));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal([&] { unpack(std::span(whole).first(size)); }), "no error") << size;
  }
  std::vector<std::byte> huge = whole;
  huge[7] = std::byte{0x7f};
  EXPECT_EQ(refusal([&] { unpack(huge); }), "it is no safetensors file");
  std::vector<std::byte> garbled = whole;
  garbled[8] = std::byte{'x'};
  EXPECT_EQ(refusal([&] { unpack(garbled); }), "its head is not that of a safetensors file");
}

// Two workers of a job, without the job: rank 0 leads.
class Writers {
 public:
  enum class Other { Writes, WritesAndIsLost, Lives, IsLost };

  explicit Writers(const fs::path& checkpoints, std::size_t keep = 3)
      : leader_({.checkpoints = checkpoints, .rank = Rank{0}, .keep = keep}),
        other_({.checkpoints = checkpoints, .rank = Rank{1}, .keep = keep}) {}

  // Unless it writes, the other has not even a note to leave.
  void write(std::uint64_t step, Other other = Other::Writes) {
    CheckpointWriter::Lead lead;
    lead.manifest.step = step;
    lead.manifest.samples = some_state(step).samples;
    lead.manifest.workers = 2;
    lead.manifest.ranks = {0, 1};
    lead.manifest.configuration = {{"model", "mlp"}, {"batch", 10}, {"group_size", nullptr}};
    const State state = some_state(step);
    for (const Stored& tensor : state.tensors) {
      if (!tensor.name.starts_with("optimizer") && !tensor.name.starts_with("random")) {
        lead.consensus.push_back(tensor);
        lead.consensus.back().name.erase(0, tensor.name.find('/') + 1);
      }
    }
    std::memset(lead.consensus.front().bytes.data(), 0, 4);
    leader_.write(some_state(step, 10), std::move(lead));
    const bool writes = other == Other::Writes || other == Other::WritesAndIsLost;
    if (writes) {
      other_.write(some_state(step, 11), std::nullopt);
      other_.wait([] { return std::vector{true, true}; });
    }
    const bool lives = other == Other::Writes || other == Other::Lives;
    leader_.wait([&] { return std::vector{true, lives}; });
    leader_.count_last();
    other_.count_last();
  }
  std::size_t completed() const { return leader_.completed(); }
  std::size_t completed_as_the_other_knows() const { return other_.completed(); }

 private:
  CheckpointWriter leader_;
  CheckpointWriter other_;
};

// Nobody is root as long as this lives, in this thread and those that it starts.
class NotRoot {
 public:
  NotRoot() : before_(setfsuid(65534)) {}
  ~NotRoot() { setfsuid(static_cast<uid_t>(before_)); }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;

 private:
  int before_;
};

// For everybody alike, root excepted.
void allow(const fs::path& path, unsigned rights) {
  fs::permissions(path, static_cast<fs::perms>(rights));
}

// A folder of checkpoints that is not only root's.
fs::path shared_checkpoints(const TemporaryFolder& run) {
  fs::path checkpoints = checkpoints_of(run.path());
  fs::create_directories(checkpoints);
  allow(run.path(), 0777);
  allow(checkpoints, 0777);
  return checkpoints;
}

// What it holds cannot be removed.
void make_irremovable(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream(folder / "held") << "held";
  allow(folder, 0555);
}

// There is no room for what this process says, as long as this lives.
class FullStderr {
 public:
  FullStderr() : before_(dup(STDERR_FILENO)) {
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    dup2(full, STDERR_FILENO);
    close(full);
  }
  ~FullStderr() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  FullStderr(const FullStderr&) = delete;
  FullStderr& operator=(const FullStderr&) = delete;

 private:
  int before_;
};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void change_byte(const fs::path& file, std::size_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(at));
  const int before = stream.get();
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(static_cast<char>(before ^ 1));
}

TEST(Checkpoint, IsWholeWhenItHasItsName) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  Writers writers(checkpoints);
  writers.write(100);
  EXPECT_EQ(writers.completed(), 1U);
  const fs::path folder = find_checkpoint(run.path());
  EXPECT_EQ(folder, checkpoints / "step-0000000100");
  EXPECT_EQ(find_checkpoint(checkpoints), folder);
  EXPECT_EQ(find_checkpoint(folder.string() + "/"), folder);
  EXPECT_EQ(names_in(folder),
            (std::vector<std::string>{"consensus.safetensors", "manifest.json",
                                      "worker-0.safetensors", "worker-1.safetensors"}));
  EXPECT_TRUE(faults_of(folder).empty());
  const Manifest manifest = read_manifest(folder);
  EXPECT_EQ(manifest.step, 100U);
  EXPECT_EQ(manifest.samples, 2000);
  EXPECT_EQ(manifest.ranks, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(manifest.configuration["model"], "mlp");
  expect_same(state_of(read_whole(folder, manifest, "worker-1.safetensors")), some_state(100, 11));
}

TEST(Checkpoint, TheNewestAreKept) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  Writers writers(checkpoints, 2);
  for (const std::uint64_t step : {5, 10, 15, 20}) {
    writers.write(step);
  }
  EXPECT_EQ(names_in(checkpoints),
            (std::vector<std::string>{"step-0000000015", "step-0000000020"}));
  EXPECT_EQ(find_checkpoint(run.path()).filename(), "step-0000000020");
}

// Whoever writes the summary may have led none of them.
TEST(Checkpoint, EverybodyCountsThemThoughOlderOnesAreGone) {
  const TemporaryFolder run;
  Writers writers(checkpoints_of(run.path()), 1);
  for (const std::uint64_t step : {5, 10, 15}) {
    writers.write(step);
  }
  EXPECT_EQ(writers.completed(), 3U);
  EXPECT_EQ(writers.completed_as_the_other_knows(), 3U);
}

// It has its name, but it is not known whether that is on disk: who may not read a folder cannot
// sync it.
TEST(Checkpoint, ThatHasItsNameIsNotSaidToBeDropped) {
  const TemporaryFolder run;
  const fs::path checkpoints = shared_checkpoints(run);
  allow(checkpoints, 0333);
  testing::internal::CaptureStderr();
  {
    const NotRoot nobody;
    Writers writers(checkpoints);
    writers.write(10);
    EXPECT_EQ(writers.completed(), 1U);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            fmt::format("checkpoint of step 10 counts, but may be lost if the machine stops: "
                        "cannot write {}: Permission denied\n",
                        (checkpoints / "step-0000000010").string()));
  allow(checkpoints, 0777);
  EXPECT_TRUE(faults_of(find_checkpoint(run.path())).empty());
}

TEST(Checkpoint, AnOlderOneThatCannotBeRemovedIsNamed) {
  const TemporaryFolder run;
  const fs::path checkpoints = shared_checkpoints(run);
  const fs::path old = checkpoints / "step-0000000005";
  const fs::path hidden = old.string() + ".partial";
  make_irremovable(old);
  testing::internal::CaptureStderr();
  {
    const NotRoot nobody;
    Writers writers(checkpoints, 1);
    writers.write(10);
    EXPECT_EQ(writers.completed(), 1U);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            fmt::format("checkpoint of step 5 is not needed any more, but stays: cannot remove {}: "
                        "Permission denied\n",
                        hidden.string()));
  EXPECT_EQ(find_checkpoint(run.path()), checkpoints / "step-0000000010");
  allow(hidden, 0777);
}

// The configuration of older ones lacks options that decide the training.
TEST(Checkpoint, OfAnotherFormatIsRefused) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  Writers(checkpoints).write(10);
  const fs::path manifest = checkpoints / "step-0000000010" / "manifest.json";
  ordered_json json = ordered_json::parse(std::ifstream(manifest));
  EXPECT_EQ(json["format"], "starling checkpoint 4");
  json["format"] = "starling checkpoint 3";
  write_durably(manifest, json.dump());
  EXPECT_EQ(refusal([&] { find_resumption(run.path().string()); }),
            manifest.string() +
                " is of another format: \"starling checkpoint 3\"; no other checkpoint of this run "
                "is good");
}

TEST(Checkpoint, WhatIsTornAlteredOrMissingIsNamed) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  Writers writers(checkpoints);
  for (const std::uint64_t step : {10, 20, 30}) {
    writers.write(step);
  }
  const fs::path newest = checkpoints / "step-0000000030";
  const fs::path middle = checkpoints / "step-0000000020";
  const fs::path oldest = checkpoints / "step-0000000010";
  const auto refused = [&] { return refusal([&] { require_whole(newest); }); };
  EXPECT_EQ(refused(), "no error");

  change_byte(newest / "worker-1.safetensors", 300);
  EXPECT_EQ(refused(),
            fmt::format("{} is altered: its checksum is not that of the manifest; the newest good "
                        "checkpoint is {}",
                        (newest / "worker-1.safetensors").string(), middle.string()));
  EXPECT_EQ(refusal([&] { read_whole(newest, read_manifest(newest), "worker-1.safetensors"); }),
            refused());
  fs::resize_file(middle / "consensus.safetensors", 100);
  EXPECT_NE(refused().find("the newest good checkpoint is " + oldest.string()), std::string::npos)
      << refused();
  EXPECT_NE(faults_of(middle).front().find("consensus.safetensors is torn: it has 100 bytes, and"),
            std::string::npos);
  fs::remove(oldest / "worker-0.safetensors");
  EXPECT_NE(refused().find("no other checkpoint of this run is good"), std::string::npos);
  EXPECT_EQ(faults_of(oldest).front(), (oldest / "worker-0.safetensors").string() + " is missing");

  const fs::path manifest = newest / "manifest.json";
  fs::resize_file(manifest, fs::file_size(manifest) / 2);
  EXPECT_EQ(refusal([&] { read_manifest(newest); }),
            manifest.string() + " is torn or altered: it is not a manifest");
  fs::remove(manifest);
  EXPECT_EQ(refusal([&] { read_manifest(newest); }), manifest.string() + " is missing");
}

TEST(Checkpoint, AManifestThatIsNotWholeIsNamedWithTheNewestGoodCheckpoint) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  Writers writers(checkpoints);
  for (const std::uint64_t step : {10, 20}) {
    writers.write(step);
  }
  const fs::path newest = checkpoints / "step-0000000020";
  const fs::path manifest = newest / "manifest.json";
  const auto expect_named = [&](const std::string& fault) {
    const std::string refused =
        fmt::format("{} {}; the newest good checkpoint is {}", manifest.string(), fault,
                    (checkpoints / "step-0000000010").string());
    EXPECT_EQ(refusal([&] { find_resumption(run.path().string()); }), refused);
    EXPECT_EQ(refusal([&] { require_whole(newest); }), refused);
    EXPECT_EQ(faults_of(newest), std::vector{manifest.string() + " " + fault});
  };
  ordered_json json = ordered_json::parse(std::ifstream(manifest));
  json["samples"] = 401.0;
  write_durably(manifest, json.dump());
  expect_named("is altered: its checksum is not its own");
  fs::resize_file(manifest, fs::file_size(manifest) / 2);
  expect_named("is torn or altered: it is not a manifest");
  fs::remove(manifest);
  expect_named("is missing");
}

TEST(Checkpoint, OfALostWorkerIsDropped) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  Writers writers(checkpoints);
  writers.write(10);
  testing::internal::CaptureStderr();
  writers.write(20, Writers::Other::IsLost);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "checkpoint of step 20 was dropped: worker 1 was lost before it had written its part; "
            "training goes on\n");
  EXPECT_EQ(names_in(checkpoints), std::vector<std::string>{"step-0000000010"});
  // What a leader left that was lost itself.
  fs::create_directories(checkpoints / "step-0000000025.partial");
  Writers others(checkpoints);  // who is lost stays so
  testing::internal::CaptureStderr();
  others.write(30);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("checkpoint of step 25 is incomplete"),
            std::string::npos);
  EXPECT_EQ(names_in(checkpoints),
            (std::vector<std::string>{"step-0000000010", "step-0000000030"}));
}

// Nobody completes it any more: at the end of a run there is no next one, which would drop it.
TEST(Checkpoint, ThatALostLeaderLeftIsSaid) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  CheckpointWriter left({.checkpoints = checkpoints, .rank = Rank{1}});
  left.write(some_state(10), std::nullopt);
  left.wait([] { return std::vector{false, true}; });
  testing::internal::CaptureStderr();
  left.drop_incomplete();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "checkpoint of step 10 is incomplete, for a worker was lost: it was dropped\n");
  left.count_last();
  EXPECT_EQ(left.completed(), 0U);
  EXPECT_TRUE(names_in(checkpoints).empty());
}

// On a full disk there may be no room for a note of why either. The leader does not wait for one,
// as it would for a worker that lives.
TEST(Checkpoint, AWorkerThatCannotEvenSayWhyLeavesAnEmptyNote) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  const fs::path partial = checkpoints / "step-0000000010.partial";
  fs::create_directories(partial);
  for (const char* file : {"worker-1.safetensors.part", "worker-1.json.part"}) {
    fs::create_symlink("/dev/full", partial / file);
  }
  Writers writers(checkpoints);
  testing::internal::CaptureStderr();
  writers.write(10, Writers::Other::WritesAndIsLost);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            fmt::format("checkpoint of step 10 failed: cannot write {}: No space left on device; "
                        "training goes on\n"
                        "checkpoint of step 10 was dropped: worker 1 could not write its part, nor "
                        "why; training goes on\n",
                        (partial / "worker-1.safetensors").string()));
  EXPECT_EQ(writers.completed(), 0U);
  EXPECT_TRUE(names_in(checkpoints).empty());
}

// Whose stderr is on the same full disk. On the writer's thread an exception would end the process.
TEST(Checkpoint, WhatCannotBeSaidIsNoReasonToStop) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  std::ofstream(checkpoints) << "a file where the folder would be";
  Writers writers(checkpoints);
  const FullStderr full;
  writers.write(10, Writers::Other::IsLost);
  EXPECT_EQ(writers.completed(), 0U);
  EXPECT_NO_THROW(say_lost("cannot write metrics"));
}

TEST(Checkpoint, ThatCannotBeWrittenIsSaid) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  std::ofstream(checkpoints) << "a file where the folder would be";
  Writers writers(checkpoints);
  testing::internal::CaptureStderr();
  writers.write(10, Writers::Other::IsLost);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with("checkpoint of step 10 was dropped: cannot write ")) << said;
  EXPECT_TRUE(said.ends_with("; training goes on\n")) << said;
  EXPECT_EQ(writers.completed(), 0U);
}

// It takes seconds. If the leader waited as for files that can still come, it would be minutes,
// longer than a test may take.
TEST(Checkpoint, ALeaderThatCannotWriteDoesNotWaitLongForTheSilent) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  std::ofstream(checkpoints) << "a file where the folder would be";
  Writers writers(checkpoints);
  testing::internal::CaptureStderr();
  writers.write(10, Writers::Other::Lives);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with("checkpoint of step 10 was dropped: cannot write ")) << said;
  EXPECT_EQ(writers.completed(), 0U);
}

TEST(Checkpoint, BeforeARunGoesOnItsFolderIsTidied) {
  const TemporaryFolder run;
  const fs::path checkpoints = checkpoints_of(run.path());
  Writers writers(checkpoints);
  for (const std::uint64_t step : {10, 20}) {
    writers.write(step);
  }
  fs::create_directories(checkpoints / "step-0000000015.partial");
  const std::vector<std::string> aside = tidy_checkpoints(checkpoints, 10);
  EXPECT_EQ(aside, std::vector{(checkpoints / "step-0000000020.set-aside").string()});
  EXPECT_EQ(names_in(checkpoints),
            (std::vector<std::string>{"step-0000000010", "step-0000000020.set-aside"}));
  EXPECT_EQ(find_checkpoint(run.path()).filename(), "step-0000000010");
}

// Notes that stay would be taken for those of the run that goes on.
TEST(Checkpoint, WhatCannotBeTidiedIsAnError) {
  const TemporaryFolder run;
  const fs::path checkpoints = shared_checkpoints(run);
  const fs::path partial = checkpoints / "step-0000000015.partial";
  make_irremovable(partial);
  {
    const NotRoot nobody;
    EXPECT_EQ(error_of(ErrorCode::Environment, [&] { tidy_checkpoints(checkpoints, 10); }),
              fmt::format("cannot remove {}: Permission denied", partial.string()));
  }
  allow(partial, 0777);
}

TEST(Checkpoint, ThereIsNone) {
  const TemporaryFolder run;
  EXPECT_EQ(refusal([&] { find_checkpoint(run.path()); }),
            "there is no complete checkpoint in " + run.path().string());
  const fs::path partial = checkpoints_of(run.path()) / "step-0000000010.partial";
  fs::create_directories(partial);
  EXPECT_NE(refusal([&] { find_checkpoint(run.path()); }), "no error");
  EXPECT_EQ(refusal([&] { find_checkpoint(partial); }),
            partial.string() +
                " is not complete: whoever wrote it was killed; no other checkpoint "
                "of this run is good");
  EXPECT_EQ(refusal([&] { find_checkpoint(run.path() / "not"); }),
            "there is no folder " + (run.path() / "not").string());
}

TEST(Checkpoint, IsDueAfterASync) {
  const auto due = [](std::uint64_t every, std::uint64_t sync_period) {
    std::vector<std::uint64_t> steps;
    for (std::uint64_t done = 0; done <= 47; ++done) {
      if (is_checkpoint_due(done, 47, every, sync_period)) {
        steps.push_back(done);
      }
    }
    return steps;
  };
  using Steps = std::vector<std::uint64_t>;
  EXPECT_EQ(due(0, 0), Steps{});
  EXPECT_EQ(due(15, 0), (Steps{15, 30, 45, 47}));
  EXPECT_EQ(due(15, 10), (Steps{20, 30, 47}));
  EXPECT_EQ(due(3, 10), (Steps{10, 20, 30, 40, 47}));
}

// Whether a row waits is not the row's to say alone.
TEST(Checkpoint, SyncsAreThoseOfRowsThatDoNotWait) {
  const auto period = [](const std::string& algorithm, const std::string& trigger,
                         std::optional<std::uint32_t> sync_period = std::nullopt) {
    const comm::Plan plan = comm::make_plan({.workers = 4,
                                             .algorithm = algorithm,
                                             .sync_period = sync_period,
                                             .trigger = trigger,
                                             .steps = 100});
    return sync_period_of(plan.steps);
  };
  EXPECT_EQ(sync_period_of({}), 0U);  // alone
  EXPECT_EQ(period("wagma", ""), 10U);
  EXPECT_EQ(period("wagma", "", 7), 7U);
  EXPECT_EQ(period("wagma", "all"), 0U);
  EXPECT_EQ(period("dadam", "", 7), 0U);
  EXPECT_EQ(period("dadam", "first", 7), 7U);
  EXPECT_EQ(period("dadam", "first"), 0U);
  EXPECT_EQ(period("starling", ""), 0U);
  EXPECT_EQ(period("all-reduce", "first"), 0U);
  EXPECT_EQ(period("local-sgd", "first", 7), 0U);
}

TEST(Resume, OnAsManyWorkersEverybodyTakesItsOwn) {
  const TemporaryFolder run;
  Writers(checkpoints_of(run.path())).write(10);
  const Resumption resumption = find_resumption(run.path().string());
  EXPECT_EQ(resumption.run(), run.path());
  expect_same(state_of_worker(resumption, Rank{0}, 2, 20), some_state(10, 10));
  expect_same(state_of_worker(resumption, Rank{1}, 2, 20), some_state(10, 11));
}

TEST(Resume, OnAnotherNumberEverybodyTakesTheConsensus) {
  const TemporaryFolder run;
  Writers(checkpoints_of(run.path())).write(10);
  const Resumption resumption = find_resumption(run.path().string());
  const State third = state_of_worker(resumption, Rank{2}, 3, 30);
  EXPECT_EQ(third.step, 7U);  // 200 samples of 30 a step
  EXPECT_EQ(third.samples, 210);
  EXPECT_EQ(third.push_weight, 1);
  EXPECT_EQ(third.find("random/cpu"), nullptr);
  EXPECT_EQ(third.find("parameter/fc.weight")->bytes,
            stored<float>("", "F32", {2, 3}, {0, -2, 0.25F, 4, 5, -0.0F}).bytes);
  EXPECT_EQ(third.find("optimizer/momentum/fc.weight")->bytes,
            some_state(10, 10).find("optimizer/momentum/fc.weight")->bytes);
  EXPECT_EQ(state_of_worker(resumption, Rank{3}, 8, 80).step, 3U);
}

TEST(Resume, StepsThatAreTakenOverBecomeAsManySamples) {
  const auto steps_on = [](std::size_t workers, std::int64_t steps) {
    const ImagesOptions settled = settle({.steps = steps, .steps_of_workers = 4}, workers);
    EXPECT_EQ(settle(settled, workers).steps, settled.steps);
    return settled.steps.value();
  };
  EXPECT_EQ(steps_on(4, 40), 40);
  EXPECT_EQ(steps_on(2, 40), 80);
  EXPECT_EQ(steps_on(3, 40), 53);
  EXPECT_EQ(steps_on(16, 1), 1);
  EXPECT_EQ(settle({.steps = 40}, 2).steps, 40);  // typed
}

TEST(Resume, TheTrainingMustBeTheSame) {
  const TemporaryFolder run;
  Writers(checkpoints_of(run.path())).write(10);
  const Resumption resumption = find_resumption(run.path().string());
  ordered_json configuration = resumption.manifest.configuration;
  configuration["steps"] = 5000;
  require_same_training(resumption, configuration, 2);
  configuration["group_size"] = 3;
  require_same_training(resumption, configuration, 3);
  EXPECT_EQ(refusal([&] { require_same_training(resumption, configuration, 2); }),
            fmt::format("the run of {} was trained with group_size none, and this would be with 3",
                        resumption.checkpoint.string()));
  for (const char* name : {"trigger", "peers"}) {
    EXPECT_TRUE(may_differ(name, /*grouped_anew=*/true)) << name;
    EXPECT_FALSE(may_differ(name, /*grouped_anew=*/false)) << name;
  }
  configuration["batch"] = 12;
  EXPECT_NE(refusal([&] {
              require_same_training(resumption, configuration, 3);
            }).find("trained with batch 10, and this would be with 12"),
            std::string::npos);
}

}  // namespace
}  // namespace starling::workload
