// starling data: which data sets are there, and how to have those that are not.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 named it
class App;
}

namespace starling::workload {

// Adds the subcommand `data` with its own: `data list [--json]`, `data cifar10 [--to FOLDER]
// [--force]`. Results go to stdout, progress to stderr. Throws Error.
void add_data_command(CLI::App& app);

}  // namespace starling::workload
