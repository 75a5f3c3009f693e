// What the launcher of a job told this worker, read once from the environment. A variable that is
// empty counts as not set.
//
// Launchers, in the order in which they are looked for:
//   starling run    STARLING_RANK, STARLING_SIZE, and STARLING_MEET if there are several workers
//   torchrun style  RANK, WORLD_SIZE, and MASTER_ADDR and MASTER_PORT if there are several workers;
//                   LOCAL_RANK and LOCAL_WORLD_SIZE are checked if they are there
//   PMIx            PMIX_RANK and PMIX_NAMESPACE, set by mpirun and by srun --mpi=pmix
//   none            one worker
// With any of them:
//   STARLING_MEET    where worker 0 is met: unix:@NAME or tcp:HOST:PORT (an IPv6 address in
//                    brackets). Goes before MASTER_ADDR and MASTER_PORT; PMIx has no use for it.
//   STARLING_SECRET  at most 128 bytes, the same for all workers; if not set, worker 0 draws one
//
// torchrun keeps a store of its own on MASTER_PORT and says so by
// TORCHELASTIC_USE_AGENT_STORE=True: worker 0 is then met on MASTER_PORT + 1. Under mpirun or srun,
// torchrun style is followed only if it is complete: RANK, WORLD_SIZE and where to meet. Otherwise
// PMIx is: what is left of torchrun's variables comes from somewhere else. A launcher that starts
// several workers but is none of these (srun without PMIx, another MPI's mpirun) is refused rather
// than taken for as many jobs of one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "starling/base/units.h"

namespace starling::comm {

enum class Launcher : std::uint8_t { None, StarlingRun, Torchrun, Pmix };
std::string_view name_of(Launcher launcher);

struct Job {
  Launcher launcher = Launcher::None;
  // For PMIx 0 and 1: only the Rendezvous knows.
  Rank rank{0};
  std::size_t size = 1;
  std::string meet;  // where worker 0 is met, as in STARLING_MEET; empty if nobody is to be met so
  std::string secret;  // of the job; empty if the launcher gave none
};

// The value of an environment variable, or nothing.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Variables process_environment();

// Throws Error{Input}, naming the variables and their values, if the environment contradicts itself
// or says half.
Job find_job(const Variables& variables);

}  // namespace starling::comm
