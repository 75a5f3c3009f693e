// The collectives under test, as programs of one worker that need nothing but an Engine: the same
// cases run on the virtual network and on real endpoints. Each checks its own result and throws
// Error{Bug} if it is wrong; inputs must come out as they went in.
#pragma once

#include <span>
#include <string_view>

#include "starling/base/task.h"
#include "starling/comm/engine.h"
#include "tests/comm/trial.h"

namespace starling::test {

struct Case {
  std::string_view name;
  Task<void> (*run)(comm::Engine& engine, Trial& trial);
  bool one_node = false;  // only for workers that share memory
};

std::span<const Case> cases();

}  // namespace starling::test
