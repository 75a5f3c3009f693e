// starling plan figures: the figures of docs/runtime-model.md.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 named it
class App;
}

namespace starling::tool {

// Adds the subcommand to `plan`. Throws Error{Environment} if a file cannot be written.
void add_figures_command(CLI::App& plan);

}  // namespace starling::tool
