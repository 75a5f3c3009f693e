// Writes checkpoints behind training: one thread per worker. Every worker writes its own file into
// the partial folder and says so there (worker-RANK.json: size and checksum, or why not). The
// leader also writes the consensus, waits for everyone's, writes the manifest, gives the folder its
// final name, and deletes all but the newest `keep`.
//
// What goes wrong (a full disk, a worker that is lost meanwhile) is said in one line on stderr, if
// that can be written; that checkpoint is dropped, and training goes on. One that has its name
// counts, whatever goes wrong after that.
//
// Threads: one, the training's. All workers of a checkpoint share a file system.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "starling/base/time.h"
#include "starling/base/units.h"
#include "starling/train/state.h"
#include "starling/workload/checkpoint.h"

namespace starling::workload {

// Makes the folder of checkpoints ready, before anybody writes: on one worker. Partial ones are
// those of a run that was killed. Checkpoints newer than `resumed` (the run went on from an older
// one) are of another future: they are set aside, and named. Throws Error{Environment} if that
// cannot be done: notes of the run before would be taken for those of this one.
std::vector<std::string> tidy_checkpoints(const std::filesystem::path& checkpoints,
                                          std::uint64_t resumed);

class CheckpointWriter {
 public:
  struct Options {
    std::filesystem::path checkpoints;
    Rank rank{};
    std::size_t keep = 3;
  };
  // What the leader adds.
  struct Lead {
    Manifest manifest;  // all but its files
    std::vector<train::Stored> consensus;
  };
  // Whether each rank is alive.
  using Alive = std::function<std::vector<bool>()>;

  explicit CheckpointWriter(Options options);
  // Drops what is still under way.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Returns at once. Requires: wait() has returned since the last.
  void write(train::State state, std::optional<Lead> lead);
  // Until what was handed over is on disk, complete on the leader, or dropped. `alive` is asked now
  // and then, so that the leader does not wait for the dead.
  Duration wait(const Alive& alive);

  // The following: when everybody's wait() has returned, and before the next write().
  // On one worker: says and removes what nobody completes any more, for its leader was lost.
  void drop_incomplete() const;
  // Once for each that was handed over: counts it if it is complete, whoever led it.
  void count_last();
  std::size_t completed() const { return completed_; }

 private:
  struct Job {
    train::State state;
    std::optional<Lead> lead;
  };
  void run(const std::stop_token& stop);
  void write_now(Job job, const std::stop_token& stop);
  // "", or why not.
  std::string write_own(const std::filesystem::path& partial, train::State state) const;
  std::string write_consensus(const std::filesystem::path& partial, Lead& lead) const;
  std::string gather(const std::filesystem::path& partial, Manifest& manifest,
                     std::chrono::seconds patience, const std::stop_token& stop);
  void complete(const std::filesystem::path& partial, const Manifest& manifest) const;
  void leave_note(std::uint64_t step, const std::string& problem) const;
  void conclude(std::uint64_t step, std::string problem) const;
  bool is_complete(std::uint64_t step) const;
  // What cannot be removed stays, and is named.
  void drop_partial(std::uint64_t before) const;
  void drop_older(std::uint64_t step) const;
  bool is_dead(std::uint32_t rank);

  Options options_;
  std::optional<std::uint64_t> last_;  // step of what was handed over, and is not counted yet
  std::size_t completed_ = 0;
  std::mutex mutex_;  // guards the following
  std::condition_variable_any changed_;
  std::optional<Job> next_;
  bool busy_ = false;
  std::vector<bool> alive_;  // as far as known
  std::jthread thread_;
};

}  // namespace starling::workload
