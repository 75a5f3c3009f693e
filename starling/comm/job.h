// What the launcher of a job told this worker, read once from the environment.
//
// Launchers, in the order in which they are looked for:
//   starling run    STARLING_RANK, STARLING_SIZE, STARLING_MEET (unix:@NAME or tcp:HOST:PORT),
//                   STARLING_SECRET
//   torchrun style  RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; LOCAL_RANK and LOCAL_WORLD_SIZE are
//                   checked if they are there
//   PMIx            PMIX_RANK and PMIX_NAMESPACE, set by mpirun and srun
//   none            one worker
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "starling/base/units.h"

namespace starling::comm {

enum class Launcher : std::uint8_t { None, StarlingRun, Torchrun, Pmix };
std::string_view name_of(Launcher launcher);

struct Job {
  Launcher launcher = Launcher::None;
  Rank rank{0};
  std::size_t size = 1;
  std::string meet;    // where worker 0 is met, as in STARLING_MEET; empty for PMIx and None
  std::string secret;  // of the job; empty if the launcher gave none
};

// The value of an environment variable, or nothing.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Variables process_environment();

// Throws Error{Input}, naming the variables, if the environment contradicts itself or says half.
// For PMIx rank and size are filled in only by meet().
Job find_job(const Variables& variables);

}  // namespace starling::comm
