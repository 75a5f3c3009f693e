// Has starling-train measure a profile: on workers that are started here, or, under a launcher,
// with the other processes of the job.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

#include "starling/tool/words.h"

namespace starling::tool {

// `words`: of `starling-train images`. Writes the profile to `file`. Returns false in the processes
// of a launcher's job that are not to report: they have nothing left to do. Throws its exit code
// (CLI::RuntimeError) if it failed.
bool measure_profile(const Words& words, const std::filesystem::path& file);

}  // namespace starling::tool
