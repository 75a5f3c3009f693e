// How a program becomes a worker of a job:
//     auto workers = starling::comm::connect();
// Finds out by itself how it was started (job.h), meets the other workers, and connects to all of
// them. Without a launcher it is the only worker.
#pragma once

#include <memory>
#include <string>

#include "starling/base/time.h"
#include "starling/comm/engine.h"
#include "starling/comm/job.h"
#include "starling/comm/workers.h"

namespace starling::comm {

struct ConnectOptions {
  // "ucx" or "mpi"; empty: STARLING_TRANSPORT, or ucx.
  std::string transport;
  // How long to wait for the others. STARLING_PATIENCE (seconds) overrides it.
  Duration patience = std::chrono::seconds(60);
  // Anything that must be the same on all workers; compared when they meet.
  std::string configuration;
  // Bytes of the pool; 0: as much as the machine has. Only what is used takes room.
  std::size_t pool_bytes = 0;
  // Sums in shared memory where there is some.
  EngineOptions engine{.in_shared_memory = true};
};

// Throws Error{Input} if the environment contradicts itself, a library is missing, a port is in use
// or another job is met; Error{Mismatch} if workers differ in version or configuration;
// Error{Stalled} and Error{Lost} naming the workers that did not come, or ended meanwhile.
std::unique_ptr<Workers> connect(const ConnectOptions& options = {});
std::unique_ptr<Workers> connect(const Variables& variables, const ConnectOptions& options);

}  // namespace starling::comm
