// Has starling-train measure a profile: on workers that are started here, or, under a launcher,
// with the other processes of the job.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

#include "starling/tool/words.h"

namespace starling::tool {

// Whether this process is to report: there is no launcher, or it is the first of its job. The
// others of the job only take part in the measurement.
bool reports();

// `words`: of `starling-train images`. Writes the profile to `file`. Throws its exit code
// (CLI::RuntimeError) if it failed.
void measure_profile(const Words& words, const std::filesystem::path& file);

}  // namespace starling::tool
