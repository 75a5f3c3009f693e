// The checkpoints of a run under way: when they are due, what goes into them, and how long training
// stood still for them. If one is due before the last is on disk, training waits for it.
//
// Threads: the application's. Collective, except what is const.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "starling/base/time.h"
#include "starling/comm/step.h"
#include "starling/train/data_parallel.h"
#include "starling/workload/batches.h"
#include "starling/workload/checkpoint_writer.h"
#include "starling/workload/images_options.h"
#include "starling/workload/meeting.h"

namespace starling::workload {

// Steps from one sync to the next, of rows that do not wait for everyone in between; 0: there are
// none, or everyone always waits.
std::uint64_t sync_period_of(const comm::StepOptions& steps);

class Checkpointing {
 public:
  // `trained`: how long the run has trained until now. Requires: settled options, with
  // checkpoint_every above 0. All outlive this.
  Checkpointing(comm::Workers& workers, Meetings& meetings, const std::filesystem::path& run,
                const ImagesOptions& options, const Batches& batches, std::uint64_t steps,
                std::function<Seconds()> trained);

  bool is_due(std::uint64_t done) const;
  void save(std::uint64_t done, train::DataParallel& replica);
  // Until the last one is on disk. If its leader was lost before, whoever leads now says so.
  void finish();

  // Complete, whoever led them; after finish() all.
  std::size_t completed() const { return writer_.completed(); }
  // That training stood still.
  Seconds stood_still() const { return stood_still_; }

 private:
  void wait();

  Meetings& meetings_;
  const ImagesOptions& options_;
  const Batches& batches_;
  std::uint32_t workers_;
  std::uint64_t steps_;
  std::uint64_t sync_period_;
  std::function<Seconds()> trained_;
  CheckpointWriter writer_;
  Seconds stood_still_{0};
};

}  // namespace starling::workload
