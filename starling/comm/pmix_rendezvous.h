// Meeting through PMIx, the service that mpirun and srun offer to what they start: everyone puts
// its bytes under a numbered key, a fence spreads them. In a module of its own, for it needs
// libpmix: what a program without it needs to know is here. Worker 0 draws the secret unless one
// was given.
//
// PMIx does not say who is missing: Error{Stalled} names nobody. If a worker ends early, mpirun
// ends the others, and so does srun --kill-on-bad-exit; without that they wait until patience is
// over.
//
// One per process. A program that uses MPI as well calls MPI_Init before the rendezvous or while it
// lives: Open MPI cannot start once PMIx has been left.
#pragma once

#include "starling/comm/rendezvous.h"

namespace starling::comm {

// The caller owns what it returns. Throws as meet().
using CreatePmixRendezvous = Rendezvous*(const Job& job, Duration patience);
inline constexpr const char* kCreatePmixRendezvous = "starling_create_pmix_rendezvous";

}  // namespace starling::comm
