// What starts workers, and no more: all that tests under sanitizers need of the tool.
#include "starling/tool/commands.h"
#include "starling/tool/run_command.h"

namespace starling::tool {

std::span<const AddCommand> commands() {
  static constexpr AddCommand kCommands[] = {add_run_command};
  return kCommands;
}

}  // namespace starling::tool
