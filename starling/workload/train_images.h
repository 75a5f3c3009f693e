// One worker of `starling train images`, from meeting the others to the summary.
#pragma once

#include "starling/workload/images_options.h"

namespace starling::workload {

// Joins the job that the environment describes. The leader prints progress to stderr, and the
// summary to stdout. Throws Error; AlreadyTold (meeting.h) if another worker failed for all.
void train_images(const ImagesOptions& typed);

}  // namespace starling::workload
