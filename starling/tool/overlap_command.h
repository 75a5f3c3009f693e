// starling bench overlap: what an exchange that is shorter than the computation costs a step.
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

void add_overlap_command(CLI::App& bench);

}  // namespace starling::tool
