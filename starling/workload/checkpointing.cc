#include "starling/workload/checkpointing.h"

#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "starling/comm/step.h"
#include "starling/train/plan_of_rounds.h"
#include "starling/workload/images_training.h"

namespace starling::workload {
namespace {

using Clock = std::chrono::steady_clock;

// As the module calls them.
std::vector<train::Stored> with_plain_names(std::vector<train::Stored> tensors) {
  for (train::Stored& tensor : tensors) {
    tensor.name.erase(0, tensor.name.find('/') + 1);
  }
  return tensors;
}

}  // namespace

std::uint64_t sync_period_of(const comm::StepOptions& steps) {
  if (steps.algorithm == nullptr) {
    return 0;
  }
  const comm::RoundsOptions rounds = comm::rounds_of(steps);
  const bool waits =
      rounds.trigger.when == comm::TriggerOptions::When::All || rounds.sync_period == 1;
  return waits ? 0 : rounds.sync_period.value_or(0);
}

Checkpointing::Checkpointing(comm::Workers& workers, Meetings& meetings,
                             const std::filesystem::path& run, const ImagesOptions& options,
                             const Batches& batches, std::uint64_t steps,
                             std::function<Seconds()> trained)
    : meetings_(meetings),
      options_(options),
      batches_(batches),
      workers_(static_cast<std::uint32_t>(workers.size())),
      steps_(steps),
      sync_period_(sync_period_of(
          train::plan_rounds(workers, training_options(options, workers.size(), steps)).steps)),
      trained_(std::move(trained)),
      writer_({.checkpoints = checkpoints_of(run),
               .rank = workers.rank(),
               .keep = static_cast<std::size_t>(options.keep)}) {}

bool Checkpointing::is_due(std::uint64_t done) const {
  return is_checkpoint_due(done, steps_, static_cast<std::uint64_t>(options_.checkpoint_every),
                           sync_period_);
}

void Checkpointing::wait() {
  writer_.wait([this] { return meetings_.alive(); });
}

void Checkpointing::save(std::uint64_t done, train::DataParallel& replica) {
  const auto since = Clock::now();
  wait();
  std::optional<CheckpointWriter::Lead> lead;
  const std::array<double, 1> present = {1};
  meetings_.meet(present, 0, [&](const Meetings::Records& records) {
    Manifest& manifest = lead.emplace().manifest;
    for (std::uint32_t rank = 0; rank < records.size(); ++rank) {
      if (records[rank]) {
        manifest.ranks.push_back(rank);
      }
    }
    return Meetings::Answer();
  });
  writer_.count_last();
  train::State state;
  replica.at_rest([&] {
    replica.with_consensus_model([&] {
      if (lead) {
        lead->consensus = with_plain_names(replica.values());
      }
    });
    state = replica.state();
  });
  if (lead) {
    Manifest& manifest = lead->manifest;
    manifest.step = done;
    manifest.samples = replica.samples();
    manifest.train_seconds = trained_().count();
    manifest.workers = workers_;
    manifest.epoch = batches_.epoch_of(done);
    manifest.step_of_epoch = done % batches_.steps_per_epoch();
    manifest.configuration = json_of(options_);
  }
  writer_.write(std::move(state), std::move(lead));
  stood_still_ += std::chrono::duration_cast<Seconds>(Clock::now() - since);
}

void Checkpointing::finish() {
  const auto since = Clock::now();
  wait();
  stood_still_ += std::chrono::duration_cast<Seconds>(Clock::now() - since);
  const std::array<double, 1> present = {1};
  meetings_.meet(present, 0, [&](const Meetings::Records&) {
    writer_.drop_incomplete();
    return Meetings::Answer();
  });
  writer_.count_last();
}

}  // namespace starling::workload
