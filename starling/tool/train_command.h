// starling train: workers of starling-train, started here unless a launcher has started this.
// starling data, starling checkpoint: passed on.
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

void add_train_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_checkpoint_command(CLI::App& app);

}  // namespace starling::tool
