// What the tool can do: one row per subcommand, each adds itself with its options.
#pragma once

#include <CLI/CLI.hpp>
#include <span>

namespace starling::tool {

using AddCommand = void (*)(CLI::App&);
std::span<const AddCommand> commands();

}  // namespace starling::tool
