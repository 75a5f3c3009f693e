#include "starling/tool/commands.h"

#include "starling/tool/bench_command.h"
#include "starling/tool/compare_command.h"
#include "starling/tool/plan_command.h"
#include "starling/tool/run_command.h"
#include "starling/tool/simulate_command.h"
#include "starling/tool/topology_command.h"
#include "starling/tool/train_command.h"

namespace starling::tool {

std::span<const AddCommand> commands() {
  static constexpr AddCommand kCommands[] = {
      add_bench_command,    add_checkpoint_command, add_compare_command,
      add_data_command,     add_plan_command,       add_run_command,
      add_simulate_command, add_topology_command,   add_train_command};
  return kCommands;
}

}  // namespace starling::tool
