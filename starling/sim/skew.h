// Calls of workers that arrive one after the other: how long each takes, from its arrival until it
// has a result, where everybody waits for everybody, and where whoever is late is left behind. The
// same program runs on a virtual network and between processes (bench/rounds).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "starling/base/task.h"
#include "starling/base/units.h"
#include "starling/comm/engine.h"
#include "starling/sim/ports.h"

namespace starling::sim {

// Runs a function where the application computes, and goes on when it has run.
using Apart = std::function<Task<void>(std::function<void()>)>;
// Where nothing takes time.
Task<void> at_once(std::function<void()> work);

struct SkewOptions {
  Bytes bytes{1000};      // of the model; a multiple of 4
  int calls = 16;         // of each kind
  int warmup = 0;         // calls before those, which are not timed
  double spacing = 1e-3;  // worker r arrives r times this late, in seconds
  bool weightless = false;
  // Of several runs of one engine: which, counted from 0.
  std::uint64_t run = 0;
};

// Seconds, one per call.
struct CallTimes {
  std::vector<double> blocking;       // an all-reduce among all
  std::vector<double> wait_avoiding;  // a round of wait-avoiding groups
};

// One worker's part. Workers are aligned by a barrier before every call.
Task<CallTimes> time_calls(comm::Engine& engine, SkewOptions options, Apart apart);

// On a virtual network, the calls of all workers together.
CallTimes simulate_calls(const PortOptions& ports, SkewOptions options);

double mean(const std::vector<double>& values);

}  // namespace starling::sim
