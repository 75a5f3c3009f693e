// starling bench: Starling against others and against the limits of the machine, in one run.
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

void add_bench_command(CLI::App& app);

}  // namespace starling::tool
