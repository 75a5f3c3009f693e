#include "starling/workload/checkpoint_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "starling/base/error.h"
#include "starling/workload/durable_file.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook(10);  // between looks for the files of others
// For the files of all workers that live. They say if they cannot write one, unless not even that
// can be written. A leader that could not write its own only lets the others end what they write.
constexpr std::chrono::seconds kPatience(300);
constexpr std::chrono::seconds kPatienceInVain(10);

std::string note_of(std::uint32_t rank) { return fmt::format("worker-{}.json", rank); }

// "", or why `act` failed.
template <typename Act>
std::string failure_of(const Act& act) {
  try {
    act();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

// Not with the words that an error of the whole program begins with. On a full disk in vain.
void say(std::uint64_t step, const std::string& what) {
  std::fputs(fmt::format("checkpoint of step {} {}\n", step, what).c_str(), stderr);
  std::fflush(stderr);
}

void require_done(std::string_view what, const fs::path& path, const std::error_code& error) {
  if (error) {
    throw Error(ErrorCode::Environment,
                fmt::format("cannot {} {}: {}", what, path.string(), error.message()));
  }
}

void remove_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  require_done("remove", folder, error);
}

// What has the other name already is removed.
void rename_folder(const fs::path& from, const fs::path& to) {
  remove_folder(to);
  std::error_code error;
  fs::rename(from, to, error);
  require_done("rename", from, error);
}

// First out of sight, so that a half deleted one does not look complete.
void remove_checkpoint(const FoundCheckpoint& checkpoint) {
  const fs::path hidden = partial_folder(checkpoint.folder.parent_path(), checkpoint.step);
  rename_folder(checkpoint.folder, hidden);
  remove_folder(hidden);
}

}  // namespace

std::vector<std::string> tidy_checkpoints(const fs::path& checkpoints, std::uint64_t resumed) {
  for (const FoundCheckpoint& partial : list_partial(checkpoints)) {
    remove_folder(partial.folder);
  }
  std::vector<std::string> aside;
  for (const FoundCheckpoint& newer : list_checkpoints(checkpoints)) {
    if (newer.step > resumed) {
      const fs::path name = newer.folder.string() + ".set-aside";
      rename_folder(newer.folder, name);
      aside.push_back(name.string());
    }
  }
  return aside;
}

CheckpointWriter::CheckpointWriter(Options options)
    : options_(std::move(options)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

CheckpointWriter::~CheckpointWriter() {
  thread_.request_stop();
  thread_.join();
}

void CheckpointWriter::write(train::State state, std::optional<Lead> lead) {
  const std::lock_guard lock(mutex_);
  check(!busy_, "a checkpoint before the last is written");
  busy_ = true;
  last_ = state.step;
  next_.emplace(Job{std::move(state), std::move(lead)});
  changed_.notify_all();
}

Duration CheckpointWriter::wait(const Alive& alive) {
  const auto since = Clock::now();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(50), [this] { return !busy_; })) {
    lock.unlock();
    std::vector<bool> now = alive();
    lock.lock();
    alive_ = std::move(now);
  }
  return std::chrono::duration_cast<Duration>(Clock::now() - since);
}

void CheckpointWriter::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return next_.has_value(); })) {
    Job job = std::move(*next_);
    next_.reset();
    lock.unlock();
    write_now(std::move(job), stop);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void CheckpointWriter::write_now(Job job, const std::stop_token& stop) {
  const std::uint64_t step = job.state.step;
  const fs::path partial = partial_folder(options_.checkpoints, step);
  std::string problem = write_own(partial, std::move(job.state));
  if (!job.lead) {
    if (!problem.empty()) {
      leave_note(step, problem);
    }
    return;
  }
  Manifest& manifest = job.lead->manifest;
  if (problem.empty()) {
    problem = write_consensus(partial, *job.lead);
  }
  const std::string others =
      gather(partial, manifest, problem.empty() ? kPatience : kPatienceInVain, stop);
  problem = problem.empty() ? others : problem;
  if (problem.empty()) {
    problem = failure_of([&] { complete(partial, manifest); });
  }
  conclude(step, std::move(problem));
}

// On the leader. `problem`: what went wrong, or "".
void CheckpointWriter::conclude(std::uint64_t step, std::string problem) const {
  if (!problem.empty() && !is_complete(step)) {
    say(step, fmt::format("was dropped: {}; training goes on", problem));
    std::error_code error;
    fs::remove_all(partial_folder(options_.checkpoints, step), error);
    return;
  }
  if (!problem.empty()) {
    say(step, fmt::format("counts, but may be lost if the machine stops: {}", problem));
  }
  problem = failure_of([&] { drop_older(step); });
  if (!problem.empty()) {
    say(step, fmt::format("is complete, but older ones stay: {}", problem));
  }
}

std::string CheckpointWriter::write_own(const fs::path& partial, train::State state) const {
  return failure_of([&] {
    std::error_code error;
    fs::create_directories(partial, error);
    require_done("write", partial, error);
    const Packed packed = pack(state);
    const Pieces pieces = packed.pieces();
    const FileFacts facts = facts_of(worker_file(options_.rank), pieces);
    write_durably(partial / facts.name, pieces);
    write_durably(partial / note_of(options_.rank.value), json_of(facts).dump());
  });
}

// So that the leader does not wait. An empty note takes no room on a full disk.
void CheckpointWriter::leave_note(std::uint64_t step, const std::string& problem) const {
  const fs::path note = partial_folder(options_.checkpoints, step) / note_of(options_.rank.value);
  const std::string untold =
      failure_of([&] { write_durably(note, ordered_json({{"failed", problem}}).dump()); });
  if (!untold.empty()) {
    say(step, fmt::format("failed: {}; training goes on", problem));
    failure_of([&] { write_durably(note, ""); });
  }
}

std::string CheckpointWriter::write_consensus(const fs::path& partial, Lead& lead) const {
  return failure_of([&] {
    const Packed packed =
        pack(lead.consensus, {{"format", "pt"}, {"step", fmt::format("{}", lead.manifest.step)}});
    const Pieces pieces = packed.pieces();
    lead.manifest.files = {facts_of(kConsensusFile, pieces)};
    write_durably(partial / kConsensusFile, pieces);
    lead.consensus.clear();
  });
}

bool CheckpointWriter::is_dead(std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  return rank < alive_.size() && !alive_[rank];
}

// Until everybody's note is there, or will not be.
std::string CheckpointWriter::gather(const fs::path& partial, Manifest& manifest,
                                     std::chrono::seconds patience, const std::stop_token& stop) {
  std::string problem;
  const auto until = Clock::now() + patience;
  for (const std::uint32_t rank : manifest.ranks) {
    const fs::path note = partial / note_of(rank);
    std::error_code error;
    if (rank == options_.rank.value && !fs::exists(note, error)) {
      continue;  // this worker knows why
    }
    while (!fs::exists(note, error)) {
      const bool is_lost = is_dead(rank) && !fs::exists(note, error);
      if (is_lost || stop.stop_requested() || Clock::now() > until) {
        problem = fmt::format(
            "worker {} {}", rank,
            is_lost ? "was lost before it had written its part" : "has not written its part");
        break;
      }
      std::this_thread::sleep_for(kLook);
    }
    if (!fs::exists(note, error)) {
      continue;
    }
    const std::string failed = failure_of([&] {
      const std::vector<std::byte> bytes = read_bytes(note);
      require(!bytes.empty(), "worker {} could not write its part, nor why", rank);
      const auto* text = reinterpret_cast<const char*>(bytes.data());
      const ordered_json json = ordered_json::parse(text, text + bytes.size());
      require(!json.contains("failed"), "{}", json.value("failed", ""));
      manifest.files.push_back(file_facts_of(json));
      fs::remove(note, error);
    });
    problem = problem.empty() ? failed : problem;
  }
  return problem;
}

void CheckpointWriter::complete(const fs::path& partial, const Manifest& manifest) const {
  write_durably(partial / kManifestFile, json_of(manifest).dump(2) + "\n");
  rename_durably(partial, checkpoint_folder(options_.checkpoints, manifest.step));
}

bool CheckpointWriter::is_complete(std::uint64_t step) const {
  std::error_code error;
  return fs::exists(checkpoint_folder(options_.checkpoints, step) / kManifestFile, error);
}

// The newest is not removed before the next is complete, which needs a file of every worker.
void CheckpointWriter::count_last() {
  completed_ += last_ && is_complete(*last_) ? 1 : 0;
  last_.reset();
}

void CheckpointWriter::drop_incomplete() const {
  const std::string problem =
      failure_of([&] { drop_partial(std::numeric_limits<std::uint64_t>::max()); });
  if (!problem.empty()) {
    say(last_.value_or(0), fmt::format("may be incomplete: {}", problem));
  }
}

void CheckpointWriter::drop_partial(std::uint64_t before) const {
  for (const FoundCheckpoint& partial : list_partial(options_.checkpoints)) {
    if (partial.step < before) {
      const std::string problem = failure_of([&] { remove_folder(partial.folder); });
      say(partial.step, problem.empty() ? "is incomplete, for a worker was lost: it was dropped"
                                        : fmt::format("is incomplete, and stays: {}", problem));
    }
  }
}

void CheckpointWriter::drop_older(std::uint64_t step) const {
  drop_partial(step);
  const std::vector<FoundCheckpoint> all = list_checkpoints(options_.checkpoints);
  for (std::size_t i = 0; i + options_.keep < all.size(); ++i) {
    const std::string problem = failure_of([&] { remove_checkpoint(all[i]); });
    if (!problem.empty()) {
      say(all[i].step, fmt::format("is not needed any more, but stays: {}", problem));
    }
  }
}

}  // namespace starling::workload
