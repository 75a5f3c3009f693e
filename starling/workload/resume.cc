#include "starling/workload/resume.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "starling/base/error.h"

namespace starling::workload {
namespace {

using nlohmann::ordered_json;

std::string shown(const ordered_json& value) {
  return value.is_null() ? "none" : value.is_string() ? value.get<std::string>() : value.dump();
}

bool is_on_as_many(const Manifest& manifest, std::size_t workers) {
  return manifest.workers == workers && manifest.ranks.size() == workers;
}

// Parameters and buffers become those of the consensus.
void put_consensus(train::State& state, std::vector<train::Stored> consensus) {
  for (train::Stored& tensor : state.tensors) {
    for (const std::string_view kind : {"parameter/", "buffer/"}) {
      if (!tensor.name.starts_with(kind)) {
        continue;
      }
      const std::string_view name = std::string_view(tensor.name).substr(kind.size());
      const auto mean = std::find_if(consensus.begin(), consensus.end(),
                                     [&](const train::Stored& s) { return s.name == name; });
      require(mean != consensus.end() && mean->shape == tensor.shape && mean->type == tensor.type,
              "the consensus of the checkpoint does not have {} as its workers have", name);
      tensor.bytes = std::move(mean->bytes);
      break;
    }
  }
}

}  // namespace

Resumption find_resumption(const std::string& given) {
  Resumption found;
  found.checkpoint = find_checkpoint(std::filesystem::absolute(given));
  found.manifest = require_manifest(found.checkpoint);
  return found;
}

bool may_differ(std::string_view name, bool grouped_anew) {
  constexpr std::array<std::string_view, 12> kFree = {
      "epochs", "steps", "eval_every",       "no_evaluation", "evaluate_batch", "warm_up_steps",
      "delay",  "pace",  "checkpoint_every", "keep",          "resume",         "data_folder"};
  // What may make no sense for so many.
  constexpr std::array<std::string_view, 4> kOfGroups = {"group_size", "schedule", "peers",
                                                         "trigger"};
  const auto is_in = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return is_in(kFree) || (grouped_anew && is_in(kOfGroups));
}

void require_same_training(const Resumption& resumption, const ordered_json& configuration,
                           std::size_t workers) {
  const bool grouped_anew = !is_on_as_many(resumption.manifest, workers);
  for (const auto& [name, before] : resumption.manifest.configuration.items()) {
    if (may_differ(name, grouped_anew) || !configuration.contains(name)) {
      continue;
    }
    const ordered_json& now = configuration.at(name);
    require(now == before, "the run of {} was trained with {} {}, and this would be with {}",
            resumption.checkpoint.string(), name, shown(before), shown(now));
  }
}

train::State state_of_worker(const Resumption& resumption, Rank rank, std::size_t workers,
                             double samples_per_step) {
  const Manifest& manifest = resumption.manifest;
  const std::uint32_t from = manifest.ranks[rank.index() % manifest.ranks.size()];
  train::State state =
      state_of(read_whole(resumption.checkpoint, manifest, worker_file(Rank{from})));
  if (is_on_as_many(manifest, workers)) {
    return state;
  }
  put_consensus(state, read_whole(resumption.checkpoint, manifest, kConsensusFile).tensors);
  // Two workers must not draw the same.
  std::erase_if(state.tensors,
                [](const train::Stored& tensor) { return tensor.name == "random/cpu"; });
  state.push_weight = 1;
  state.step = static_cast<std::uint64_t>(std::llround(manifest.samples / samples_per_step));
  state.samples = static_cast<double>(state.step) * samples_per_step;
  return state;
}

}  // namespace starling::workload
