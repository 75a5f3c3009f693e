// What the tool can do: one row per subcommand, each adds itself with its options.
#pragma once

#include <span>

namespace CLI {
class App;
}

namespace starling::tool {

using AddCommand = void (*)(CLI::App&);
std::span<const AddCommand> commands();

}  // namespace starling::tool
