// Measures what the runtime model needs to know of a model on these workers: its computation
// without any exchange, its updates, and the exchanges of every candidate with all groups at it.
#pragma once

#include <filesystem>

#include "starling/workload/images_options.h"

namespace starling::workload {

// As train_images() with the same options would train; the leader writes the profile to
// `options.measure`.
void measure_images(const ImagesOptions& options);

}  // namespace starling::workload
