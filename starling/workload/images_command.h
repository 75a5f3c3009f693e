// starling-train images: the command line of a worker.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 named it
class App;
}

namespace starling::workload {

// Adds the subcommand `images`. With --check it trains nothing: it refuses what it would refuse,
// and prints a line of JSON for `starling train`: workers, threads (0: not said), on_loss.
void add_images_command(CLI::App& app);

}  // namespace starling::workload
