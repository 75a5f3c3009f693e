// A step that sleeps in place of computing: updates and exchanges are real.
#pragma once

#include "starling/base/compute_times.h"
#include "starling/base/time.h"
#include "starling/train/data_parallel.h"

namespace starling::workload {

// `late`, then the forward pass; then the backward pass, of which each bucket takes the same part.
train::StepReport emulate_step(train::DataParallel& replica, Duration late, ComputeTime time);

}  // namespace starling::workload
