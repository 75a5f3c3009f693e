// starling bench stragglers: steps per second when some workers are late at every step.
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

void add_stragglers_command(CLI::App& bench);

}  // namespace starling::tool
