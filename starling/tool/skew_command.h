// starling bench skew: what a call costs when workers arrive one after the other.
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

void add_skew_command(CLI::App& bench);

}  // namespace starling::tool
