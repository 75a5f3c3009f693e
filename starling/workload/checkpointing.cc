#include "starling/workload/checkpointing.h"

#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "starling/comm/plan.h"
#include "starling/topology/algorithm.h"

namespace starling::workload {
namespace {

using Clock = std::chrono::steady_clock;

// Of rows that wait for nobody, otherwise 0.
std::uint64_t sync_period_of(const ImagesOptions& options) {
  if (options.algorithm == "alone") {
    return 0;
  }
  const topology::Algorithm& row = topology::find_algorithm(options.algorithm);
  if (row.trigger == topology::Trigger::AllArrived) {
    return 0;
  }
  const std::int64_t usual = topology::default_sync_period(row).value_or(0);
  return static_cast<std::uint64_t>(options.sync_period.value_or(usual));
}

// As the module calls them.
std::vector<train::Stored> with_plain_names(std::vector<train::Stored> tensors) {
  for (train::Stored& tensor : tensors) {
    tensor.name.erase(0, tensor.name.find('/') + 1);
  }
  return tensors;
}

}  // namespace

Checkpointing::Checkpointing(comm::Workers& workers, Meetings& meetings,
                             const std::filesystem::path& run, const ImagesOptions& options,
                             const Batches& batches, std::uint64_t steps,
                             std::function<Seconds()> trained)
    : meetings_(meetings),
      options_(options),
      batches_(batches),
      workers_(static_cast<std::uint32_t>(workers.size())),
      steps_(steps),
      sync_period_(sync_period_of(options)),
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
  replica.with_consensus_model([&] {
    if (lead) {
      lead->consensus = with_plain_names(replica.values());
    }
  });
  if (lead) {
    Manifest& manifest = lead->manifest;
    manifest.step = done;
    manifest.samples = replica.samples();
    manifest.train_seconds = trained_().count();
    manifest.workers = workers_;
    manifest.epoch = batches_.epoch_of(done);
    manifest.step_of_epoch = done % batches_.steps_per_epoch();
    manifest.model = digest_of_model(lead->consensus);
    manifest.configuration = json_of(options_);
  }
  writer_.write(replica.state(), std::move(lead));
  stood_still_ += std::chrono::duration_cast<Seconds>(Clock::now() - since);
}

void Checkpointing::finish() {
  const auto since = Clock::now();
  wait();
  stood_still_ += std::chrono::duration_cast<Seconds>(Clock::now() - since);
}

}  // namespace starling::workload
