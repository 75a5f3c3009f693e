// Steps with stragglers: at every step some workers, drawn anew, take longer. How many steps a
// second do all take, with one algorithm and another? The same program runs on a virtual network
// and between processes (bench/rounds).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "starling/base/task.h"
#include "starling/base/units.h"
#include "starling/comm/engine.h"
#include "starling/sim/ports.h"
#include "starling/sim/skew.h"

namespace starling::sim {

struct StragglerOptions {
  std::string algorithm = "wagma";  // topology/algorithm.h
  Bytes bytes{10'000'000};          // of the model; a multiple of 4
  std::uint64_t steps = 40;
  double step = 0.6;             // seconds
  std::uint32_t stragglers = 2;  // per step, of all workers
  double delay = 0.32;           // of each of them
  std::uint32_t sync_period = 10;
  std::uint64_t seed = 1;
  bool weightless = false;
  std::uint64_t run = 0;  // of several runs of one engine: which, counted from 0
};

// Whether `worker` straggles at `step`; the same everywhere.
bool straggles(const StragglerOptions& options, std::size_t workers, Rank worker, Step step);

// One worker's steps. `compute` takes that many seconds where the application computes.
using Compute = std::function<Task<void>(double seconds)>;
Task<void> take_straggling_steps(comm::Engine& engine, StragglerOptions options, Compute compute,
                                 Apart apart);

// On a virtual network: seconds until the last worker has taken its last step.
double simulate_stragglers(const PortOptions& ports, StragglerOptions options);

}  // namespace starling::sim
