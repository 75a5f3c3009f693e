// starling topology: show, check and compare schedules.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 named it
class App;
}

namespace starling::tool {

// Adds the subcommand with its options; when chosen it prints to stdout. Throws Error{Input} for
// what the user got wrong.
void add_topology_command(CLI::App& app);

}  // namespace starling::tool
