// The options of the command as those of the trainer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "starling/train/data_parallel.h"
#include "starling/workload/images_options.h"

namespace starling::workload {

// Without the ledger. Requires: settled.
train::Options training_options(const ImagesOptions& options, std::size_t workers,
                                std::uint64_t steps);
train::Optimizer make_optimizer(const ImagesOptions& options);

}  // namespace starling::workload
