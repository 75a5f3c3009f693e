// How torch uses this process: threads, memory, and whether its matrices are multiplied fast.
#pragma once

namespace starling::workload {

// Threads of torch and of OpenBLAS, which torch does not limit. 0: what OMP_NUM_THREADS says, or 1.
// Returns how many there are.
int use_threads(int threads);

// Freed memory of one step is kept for the next, as `starling run` has it by the environment.
void keep_freed_memory();

// Of one core, from a product of two 512 x 512 matrices. Leaves one thread in use.
double measure_gigaflops();
// A reference BLAS reaches 5, an optimised one 50 and more.
inline constexpr double kSlowGigaflops = 12;

}  // namespace starling::workload
