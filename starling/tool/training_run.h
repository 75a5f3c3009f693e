// One short run of starling-train on this machine: workers that train, nothing but that timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace starling::tool {

struct TrainingRun {
  std::size_t workers = 4;
  std::string model = "mlp";
  std::string algorithm = "alone";
  std::uint64_t steps = 400;         // that are timed
  std::uint64_t warm_up_steps = 20;  // before them
  // Of `starling-train images`, in addition.
  std::vector<std::string> options = {};
};

// Words that choose pairs, where the algorithm leaves a choice: what suits few workers on one host.
std::vector<std::string> pairs_of(const std::string& algorithm);

// Runs it in `folder`, which is new and holds metrics and ledgers afterwards: AdamW, batches of 64,
// no evaluation. Returns its summary. Throws as run_program() does.
nlohmann::json run_training(const TrainingRun& run, const std::filesystem::path& folder);

}  // namespace starling::tool
