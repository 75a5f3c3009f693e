// `starling simulate …`: the real protocols in virtual time.
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

void add_simulate_command(CLI::App& app);

}  // namespace starling::tool
