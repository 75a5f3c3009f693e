#include "starling/workload/batches.h"

#include <algorithm>
#include <cmath>

#include "starling/base/draws.h"
#include "starling/base/error.h"
#include "starling/base/permutation.h"

namespace starling::workload {
namespace {

// Where in an uneven epoch the part of worker r begins; workers' parts add up to the whole.
std::uint64_t uneven_start(const BatchOptions& options, std::uint32_t r) {
  if (r == options.workers) {
    return options.samples;
  }
  const double slope = options.workers == 1 ? 0 : *options.uneven / (options.workers - 1);
  const auto parts_before = [&](double n) { return n + slope * n * (n - 1) / 2; };
  return static_cast<std::uint64_t>(static_cast<double>(options.samples) * parts_before(r) /
                                    parts_before(options.workers));
}

}  // namespace

Batches::Batches(const BatchOptions& options) : options_(options) {
  require(options.batch >= 1, "a batch of 0 samples: at least 1 is needed");
  require(options.samples <= UINT32_MAX, "{} samples are too many", options.samples);
  check(options.worker.value < options.workers, "there is no worker {} of {}", options.worker,
        options.workers);
  if (!options.uneven) {
    const std::uint64_t all = std::uint64_t{options.batch} * options.workers;
    steps_per_epoch_ = options.samples / all;
    require(steps_per_epoch_ >= 1,
            "{} workers with a batch of {} need {} samples for one step; the data set has {}",
            options.workers, options.batch, all, options.samples);
    return;
  }
  require(std::isfinite(*options.uneven) && *options.uneven >= 0,
          "uneven {}: allowed are 0 and more", *options.uneven);
  first_ = uneven_start(options, options.worker.value);
  end_ = uneven_start(options, options.worker.value + 1);
  require(end_ > first_, "of {} samples none is left for worker {} of {}", options.samples,
          options.worker, options.workers);
  steps_per_epoch_ = (end_ - first_ + options.batch - 1) / options.batch;
}

std::uint64_t Batches::samples_before(std::uint64_t step) const {
  if (!options_.uneven) {
    return step * options_.batch;
  }
  const std::uint64_t in_epoch = step % steps_per_epoch_ * options_.batch;
  return epoch_of(step) * (end_ - first_) + in_epoch;
}

std::vector<std::uint32_t> Batches::batch(std::uint64_t step) const {
  const std::uint64_t in_epoch = step % steps_per_epoch_;
  const std::uint64_t size = options_.batch;
  const std::uint64_t begin = options_.uneven
                                  ? first_ + in_epoch * size
                                  : (in_epoch * options_.workers + options_.worker.value) * size;
  const std::uint64_t end = options_.uneven ? std::min(begin + size, end_) : begin + size;
  const Permutation shuffle(draws(options_.seed, Purpose::Shuffle).stream(epoch_of(step)),
                            static_cast<std::uint32_t>(options_.samples));
  std::vector<std::uint32_t> samples;
  samples.reserve(end - begin);
  for (std::uint64_t place = begin; place < end; ++place) {
    samples.push_back(shuffle.image(static_cast<std::uint32_t>(place)));
  }
  return samples;
}

}  // namespace starling::workload
