// `starling checkpoint`: which checkpoints a run has, whether they are whole, and the consensus of
// one as a file of its own.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 named it
class App;
}

namespace starling::workload {

void add_checkpoint_command(CLI::App& app);

}  // namespace starling::workload
