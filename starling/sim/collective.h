// One collective on a virtual network: how long it takes, what it moves, who waits for whom, and
// what the closed form says. What `starling simulate collective` runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "starling/base/units.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/cost.h"
#include "starling/comm/report.h"
#include "starling/sim/cluster.h"

namespace starling::sim {

enum class CollectiveKind {
  AllReduce,  // among all
  Ring,       // all-reduce on a ring, the rival
  Group,      // all-reduce inside groups of group_size consecutive workers, all at once
  Neighbour,  // weighted exchange with both neighbours on a ring
  Push,       // push-sum to the workers 1, 2, 4 … ahead
  Broadcast,  // from worker 0
  Barrier,
};
std::string_view name_of(CollectiveKind kind);

struct Late {
  Rank worker{};
  double seconds = 0;
};

struct CollectiveOptions {
  CollectiveKind kind = CollectiveKind::AllReduce;
  comm::AllReduce algorithm = comm::AllReduce::Auto;  // of AllReduce and Group
  comm::Precision precision = comm::Precision::Full;  // the same
  Bytes bytes{1'000'000};
  std::size_t group_size = 8;  // of Group; the last group may be smaller
  std::size_t peers = 1;       // of Push
  std::vector<Late> late;
  // Carry real numbers and compare every worker's result with a sum in double. Memory: 2 buffers
  // per worker.
  bool verify = false;
  NetworkOptions network;
  comm::EngineOptions engine;
  // Called now and then while the simulation runs.
  std::function<void(const Network&)> progress;
};

struct WorkerResult {
  double arrived = 0;
  double finished = 0;
  std::vector<comm::Wait> waits;
  std::uint64_t bytes_sent = 0;  // headers included
  std::uint64_t messages_sent = 0;
};

struct CollectiveResult {
  comm::AllReduce algorithm = comm::AllReduce::Auto;  // the one that ran, of AllReduce and Group
  double seconds = 0;                                 // until the last worker has finished
  std::vector<WorkerResult> workers;
  std::uint64_t messages = 0;
  std::uint64_t events = 0;
  std::uint64_t trace = 0;
  comm::Cost closed_form;           // everybody on time, a card for every worker
  bool closed_form_applies = true;  // false with late workers, shared cards or jitter
};

// Throws Error{Input} for options that make no sense, Error{Bug} if verification fails.
CollectiveResult simulate(const CollectiveOptions& options);

}  // namespace starling::sim
