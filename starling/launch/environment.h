// What a worker finds in its environment.
//
//   STARLING_RANK, STARLING_SIZE   which worker it is, of how many
//   STARLING_MEET                  unix:@NAME, an abstract socket where the workers meet; only they
//                                  use it
//   STARLING_SECRET                32 hexadecimal digits, by which workers of one job know each
//   other OPENBLAS_NUM_THREADS, OMP_NUM_THREADS, MKL_NUM_THREADS
//                                  cores / workers, at least 1, so that workers share the cores
//   MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_
//                                  so large that the memory of one step is kept for the next; glibc
//                                  would give it back and have the kernel clear it at every step.
//                                  Both are needed: either alone pins the other to its small
//                                  default
//
// The first four are always set. The others are left as they are if somebody set them.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace starling::launch {

// New for each job, from the kernel's random numbers.
struct Identity {
  std::string meet;
  std::string secret;
};
Identity make_identity();

using Environment = std::map<std::string, std::string>;

// The environment of this process. If a name is there twice, its first value, as getenv has it.
Environment own_environment();

// On how many cores this process may run.
std::size_t usable_cores();

// What all workers of a job have in common; `extra` overrides `inherited`.
Environment job_environment(Environment inherited,
                            std::span<const std::pair<std::string, std::string>> extra,
                            const Identity& identity, std::size_t workers, std::size_t cores);

// NAME=VALUE, as exec wants it.
std::vector<std::string> worker_environment(const Environment& job, std::size_t rank);

}  // namespace starling::launch
