// Which samples a worker takes in which step. Every epoch is a shuffle of the whole data set, drawn
// from the seed and dealt to the workers without repetition: step t takes the next workers × batch
// samples, worker r the r-th part of them. A pure function of (seed, workers, batch, step): the
// same for every algorithm, and for a worker that begins in the middle. No table, no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "starling/base/units.h"

namespace starling::workload {

struct BatchOptions {
  std::size_t samples = 0;
  std::uint32_t workers = 1;
  Rank worker = {0};
  std::uint32_t batch = 64;  // samples of one worker in one step
  std::uint64_t seed = 0;
  // None: an epoch drops the samples (others each time) that do not fill a step of all workers, and
  // all workers take as many steps. Else: every sample is taken, the last batch of an epoch may be
  // smaller, and worker r's part is proportional to 1 + uneven · r / (workers − 1), so that workers
  // differ in how many steps they take.
  std::optional<double> uneven = std::nullopt;
};

class Batches {
 public:
  // Throws Error{Input} if the samples do not fill one step.
  explicit Batches(const BatchOptions& options);

  // Of this worker.
  std::uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  std::uint64_t epoch_of(std::uint64_t step) const { return step / steps_per_epoch_; }
  // Samples of the steps before `step`.
  std::uint64_t samples_before(std::uint64_t step) const;

  // Indices of samples, for steps 0, 1, 2, … without end.
  std::vector<std::uint32_t> batch(std::uint64_t step) const;

 private:
  BatchOptions options_;
  std::uint64_t steps_per_epoch_ = 0;
  // This worker's places in an uneven epoch: [first_, end_).
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace starling::workload
