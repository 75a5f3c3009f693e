// starling bench train: steps of training against PyTorch's, and against none of communication.
#pragma once

#include <CLI/CLI.hpp>

namespace starling::tool {

void add_bench_train_command(CLI::App& bench);

}  // namespace starling::tool
