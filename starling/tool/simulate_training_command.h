// starling simulate: training in virtual time.
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

// Its options on `simulate` itself; it runs if no subcommand of that does.
void add_training_simulation(CLI::App& simulate);

// Throws Error{Input} if the command line gives options of `simulate` itself.
void refuse_training_options(const CLI::App& simulate);

}  // namespace starling::tool
