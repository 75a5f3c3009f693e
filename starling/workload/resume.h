// Goes on from a checkpoint: which options may differ, and what a worker takes of it.
//
// On as many workers everybody takes its own file, and rows that wait for everyone go on bit for
// bit. On another number everybody begins with the consensus, with the optimizer state of one of
// the old workers, and after as many steps of its own size as make up the samples seen.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "starling/base/units.h"
#include "starling/train/state.h"
#include "starling/workload/checkpoint.h"

namespace starling::workload {

struct Resumption {
  std::filesystem::path checkpoint;  // absolute
  Manifest manifest;
  // The run that it belongs to, if it lies there.
  std::filesystem::path run() const { return checkpoint.parent_path().parent_path(); }
};
// `given` is a run or one of its checkpoints. Throws Error{Input}: of a manifest that is torn,
// altered or missing, with the newest good checkpoint.
Resumption find_resumption(const std::string& given);

// Whether an option of the configuration, by its name there, may differ from that of the run;
// `grouped_anew`: on another number of workers.
bool may_differ(std::string_view name, bool grouped_anew);
// Throws Error{Input} naming the first option that may not, and does.
void require_same_training(const Resumption& resumption,
                           const nlohmann::ordered_json& configuration, std::size_t workers);

// What worker `rank` of `workers` goes on with. `samples_per_step`: of all workers, now. Throws
// Error{Input} naming the file that is torn or altered.
train::State state_of_worker(const Resumption& resumption, Rank rank, std::size_t workers,
                             double samples_per_step);

}  // namespace starling::workload
