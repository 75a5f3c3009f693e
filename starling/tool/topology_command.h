// starling topology: show, check and compare schedules.
#pragma once

namespace CLI {
class App;
}

namespace starling::tool {

// Adds the subcommand with its options; when chosen it prints to stdout. Throws Error{Input} for
// what the user got wrong.
void add_topology_command(CLI::App& app);

}  // namespace starling::tool
