// `starling plan`: would decentralized training be faster here, which kind, and by how much?
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

void add_plan_command(CLI::App& app);

}  // namespace starling::tool
