// What waiting workers cost: worker 0 computes while all others wait for it in an all-reduce, in
// turns with stretches in which they are merely asleep. Start it under `starling run -n N`.
//     lost     how much slower the computing worker is while the others wait
//     waiting  processor time of one waiting worker, per second
//     idle     the same of a worker whose engine has nothing to do at all
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/comm/connect.h"

namespace {

using namespace starling;
using Clock = std::chrono::steady_clock;

constexpr int kTurns = 30;
constexpr Seconds kStretch{0.2};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Turns of a loop that needs nothing but the core, in one stretch.
double compute() {
  const auto until = Clock::now() + kStretch;
  double turns = 0;
  volatile float sink = 0;
  while (Clock::now() < until) {
    float x = 1;
    for (int i = 0; i < 20000; ++i) {
      x = x * 1.0000001F + 1e-7F;
    }
    sink = sink + x;
    turns += 1;
  }
  return turns;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  const auto workers = comm::connect();
  const auto everyone = workers->everyone();
  const bool computes = workers->rank() == Rank{0};
  std::uint64_t id = 0;
  const auto barrier = [&] {
    workers->run([&](comm::Engine& engine) {
      return comm::barrier(engine, {.id = ++id, .members = everyone});
    });
  };
  const std::vector<float> in(1000, 1);
  std::vector<float> out(1000);
  std::vector<double> ratios;
  double waiting = 0;
  double idle = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    barrier();
    const double before = cpu_seconds();
    double alone = 0;
    if (computes) {
      alone = compute();
    } else {
      std::this_thread::sleep_for(kStretch);
    }
    idle += cpu_seconds() - before;
    barrier();
    const double between = cpu_seconds();
    const double watched = computes ? compute() : 0;
    workers->run([&](comm::Engine& engine) {
      return comm::all_reduce(engine, {.id = ++id, .members = everyone}, comm::input(std::span(in)),
                              comm::output(std::span(out)));
    });
    waiting += cpu_seconds() - between;
    if (computes) {
      ratios.push_back(alone / watched);
    }
  }
  std::vector<double> shares = {computes ? 0 : waiting, computes ? 0 : idle};
  std::vector<double> sums(2);
  workers->run([&](comm::Engine& engine) {
    return comm::all_reduce(engine, {.id = ++id, .members = everyone},
                            comm::input(std::span<const double>(shares)),
                            comm::output(std::span(sums)));
  });
  if (computes) {
    const double time = kTurns * kStretch.count() * static_cast<double>(workers->size() - 1);
    fmt::print("{} workers: lost {:.2f} %   waiting {:.3f} % of a core each   idle {:.3f} %\n",
               workers->size(), 100 * (median(ratios) - 1), 100 * sums[0] / time,
               100 * sums[1] / time);
  }
}
