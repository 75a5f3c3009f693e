#include "starling/workload/torch_setup.h"

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>

namespace starling::workload {
namespace {

constexpr int kMmapThreshold = 1 << 30;
constexpr int kTrimThreshold = std::numeric_limits<int>::max();

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

int use_threads(int threads) {
  if (threads == 0) {
    const char* wanted = std::getenv("OMP_NUM_THREADS");
    threads = std::max(1, wanted == nullptr ? 1 : std::atoi(wanted));
  }
  at::set_num_threads(threads);
  if (void* set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads"); set != nullptr) {
    reinterpret_cast<void (*)(int)>(set)(threads);
  }
  return threads;
}

void keep_freed_memory() {
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") == nullptr) {
    mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
    mallopt(M_TRIM_THRESHOLD, kTrimThreshold);
  }
}

double measure_gigaflops() {
  use_threads(1);
  constexpr int kSide = 512;
  const at::Tensor a = at::ones({kSide, kSide});
  at::Tensor out = at::mm(a, a);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const double begin = thread_seconds();
    at::mm_out(out, a, a);
    least = std::min(least, thread_seconds() - begin);
  }
  return 2e-9 * kSide * kSide * kSide / least;
}

}  // namespace starling::workload
