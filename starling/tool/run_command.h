// `starling run`: the workers of a job on this machine.
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

// Throws CLI::RuntimeError with the exit code if that is not 0.
void add_run_command(CLI::App& app);

}  // namespace starling::tool
