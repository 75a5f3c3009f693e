// starling compare: several ways to train, paired by seeds, against one of them.
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

void add_compare_command(CLI::App& app);

}  // namespace starling::tool
