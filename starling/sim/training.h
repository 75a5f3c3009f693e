// Training in virtual time: the engine's own steps, rounds and collectives (comm/step.h) on a
// virtual network, for every row of the table of algorithms, with computation that only takes time.
// What `starling simulate` runs.
//
// Arithmetic takes no time but what `update` says; payload is weightless.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "starling/base/compute_times.h"
#include "starling/base/delay.h"
#include "starling/base/units.h"
#include "starling/comm/plan.h"
#include "starling/sim/network.h"
#include "starling/sim/slice.h"

namespace starling::sim {

struct TrainingProgress {
  double done = 0;  // of all steps of all workers
  double virtual_seconds = 0;
  std::uint64_t events = 0;
};

struct TrainingOptions {
  // Requires: steps. Workers and workers per node are those of `network`.
  comm::PlanOptions plan;
  NetworkOptions network;
  Bytes bytes{100'000'000};  // of the model: a whole number of floats
  // Equal parts of the model, each an exchange of its own.
  std::size_t buckets = 1;
  ComputeTimes compute{"constant:0.3", 0};
  double update = 0;  // seconds, of the whole model
  Delay delay{"", 1, 0};
  // What is drawn: of the first so many workers and steps.
  std::uint32_t trace_workers = 0;
  std::uint64_t trace_steps = 0;
  // Called now and then while the simulation runs; what it throws ends it.
  std::function<void(const TrainingProgress&)> progress{};
};

// Seconds of a step, mean over workers and steps.
struct StepShares {
  double compute = 0;    // forward and backward
  double delay = 0;      // on purpose, before it
  double straggler = 0;  // waiting until the last member had arrived
  double exchange = 0;   // waiting, the rest
  double update = 0;
};

struct TrainingResult {
  double seconds = 0;  // until the last worker has taken its last step
  double step_seconds = 0;
  // Mean seconds of a step in runs of consecutive steps of equal number, whole sync periods where
  // there are enough steps.
  std::vector<double> batches;
  // The same until each worker's own last step, mean over workers: less, where workers are free to
  // run ahead.
  double own_step_seconds = 0;
  StepShares shares;

  // Contributions to rounds, one per worker and round.
  std::uint64_t rounds = 0;
  std::uint64_t syncs = 0;                     // of these
  std::map<std::int64_t, std::uint64_t> ages;  // in versions
  std::uint64_t nothing = 0;                   // accumulated gradients: all had been contributed
  // Of the contributions to rounds that were no syncs: those that were not of that version.
  double stale_fraction = 0;

  double card_bytes_per_step = 0;  // through the busiest card, the busier way
  std::uint64_t messages = 0;
  std::uint64_t events = 0;
  std::uint64_t trace = 0;  // Network::trace_hash()
  std::vector<Slice> slices;
};

// The most virtual time that a simulation can take.
inline constexpr double kMostVirtualSeconds = 4e6;

// Throws Error{Input}, one line, for options that make no sense, or if it takes more virtual time
// than there is.
TrainingResult simulate_training(const TrainingOptions& options);

}  // namespace starling::sim
