// The checkpoints of a run, on disk:
//   RUN/checkpoints/step-0000000100/
//     manifest.json              what it is, and every file with its size and checksum; its own too
//     consensus.safetensors      the average of all workers, names as in the module
//     worker-RANK.safetensors    what each worker needs to go on
//   RUN/checkpoints/step-0000000100.partial/   under way, or left by a run that was killed
// A checkpoint counts once its folder has its final name, which is the last thing that is done.
//
// Errors: Error{Input} in one line that names the file. Threads: any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "starling/base/units.h"
#include "starling/workload/safetensors.h"

namespace starling::workload {

struct FileFacts {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;
};
FileFacts facts_of(std::string name, const Pieces& pieces);
nlohmann::ordered_json json_of(const FileFacts& facts);
FileFacts file_facts_of(const nlohmann::ordered_json& json);

struct Manifest {
  std::uint64_t step = 0;
  double samples = 0;                // that all workers have seen
  double train_seconds = 0;          // until then, of all parts of the run, on the leader
  std::uint32_t workers = 1;         // of the job
  std::vector<std::uint32_t> ranks;  // that were alive, and have a file
  std::uint64_t epoch = 0;           // where in the data the next step begins
  std::uint64_t step_of_epoch = 0;
  nlohmann::ordered_json configuration;
  std::vector<FileFacts> files;
};
nlohmann::ordered_json json_of(const Manifest& manifest);
// Of the folder of a checkpoint.
Manifest read_manifest(const std::filesystem::path& checkpoint);
// The same; the error also says which checkpoint of the same run is the newest good one.
Manifest require_manifest(const std::filesystem::path& checkpoint);

std::filesystem::path checkpoints_of(const std::filesystem::path& run);
std::filesystem::path checkpoint_folder(const std::filesystem::path& checkpoints,
                                        std::uint64_t step);
std::filesystem::path partial_folder(const std::filesystem::path& checkpoints, std::uint64_t step);
std::string worker_file(Rank worker);
inline constexpr const char* kConsensusFile = "consensus.safetensors";
inline constexpr const char* kManifestFile = "manifest.json";

struct FoundCheckpoint {
  std::uint64_t step = 0;
  std::filesystem::path folder;
};
// Those with their final name, or those that are partial; oldest first. None if there is no folder.
std::vector<FoundCheckpoint> list_checkpoints(const std::filesystem::path& checkpoints);
std::vector<FoundCheckpoint> list_partial(const std::filesystem::path& checkpoints);

// `given` is a run, the folder of its checkpoints, or one checkpoint: the newest of them. Not one
// that is partial.
std::filesystem::path find_checkpoint(const std::filesystem::path& given);

// What is wrong with its files, a line for each; empty: it is whole. Reads them all.
std::vector<std::string> faults_of(const std::filesystem::path& checkpoint);
// Throws the first fault, and which checkpoint of the same run is the newest without.
void require_whole(const std::filesystem::path& checkpoint);
// The same for one file of it, which is read.
Unpacked read_whole(const std::filesystem::path& checkpoint, const Manifest& manifest,
                    const std::string& name);

// Whether a checkpoint is due after `done` of `steps` steps: every so many, and after the last.
// Rows that wait for nobody are saved right after a sync, at the first one then (`sync_period`
// steps; 0: there are none).
bool is_checkpoint_due(std::uint64_t done, std::uint64_t steps, std::uint64_t every,
                       std::uint64_t sync_period);

}  // namespace starling::workload
