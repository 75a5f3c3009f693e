// One worker that runs the collective cases of the virtual network (tests/comm/cases.h), unchanged,
// on whatever endpoint connect() gives it. Everything follows from the seeds, so each worker checks
// its own results; then its digest of all bits is compared with that of the same trial in virtual
// time. Exit code 0: all right.
//     cases_program [SEEDS [TEXT]]   TEXT must be part of how the workers came together
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "starling/base/error.h"
#include "starling/comm/connect.h"
#include "starling/sim/cluster.h"
#include "tests/comm/cases.h"
#include "tests/comm/trial.h"
#include "tests/workers/guarded.h"

namespace starling::test {
namespace {

constexpr std::size_t kMostElements = 9001;
constexpr std::uint64_t kIdsPerTrial = 16;

std::uint64_t digest_in_virtual_time(const Case& which, std::uint64_t seed, std::size_t workers,
                                     Rank rank) {
  Trial trial(seed, workers, kMostElements);
  sim::ClusterOptions options;
  options.network.ports.workers = workers;
  options.network.ports.per_node = workers;
  sim::Cluster cluster(options);
  sim::rethrow_first(cluster.run([&](comm::Engine& engine) { return which.run(engine, trial); }));
  return trial.digest(rank);
}

void run_all(comm::Workers& workers, std::uint64_t seeds) {
  bool one_node = true;
  for (const Rank r : workers.everyone()) {
    one_node = one_node && workers.shares_memory_with(r);
  }
  std::uint64_t first_id = 1;
  for (const Case& which : cases()) {
    if (which.one_node && !one_node) {
      continue;
    }
    for (std::uint64_t seed = 0; seed < seeds; ++seed, first_id += kIdsPerTrial) {
      Trial trial(seed, workers.size(), kMostElements, first_id);
      workers.run([&](comm::Engine& engine) { return which.run(engine, trial); });
      check(trial.digest(workers.rank()) ==
                digest_in_virtual_time(which, seed, workers.size(), workers.rank()),
            "{} of seed {}: other bits than in virtual time", which.name, seed);
    }
  }
}

int main_of(int argc, char** argv) {
  const std::uint64_t seeds = argc > 1 ? std::stoull(argv[1]) : 10;
  // Odd lengths of chunks and windows: bulk data, several blocks and full windows in every trial.
  comm::ConnectOptions options;
  options.engine.chunk = 4096;
  options.engine.window = 3;
  options.engine.in_shared_memory = true;
  options.engine.max_stall = std::chrono::seconds(60);
  const auto workers = comm::connect(options);
  run_all(*workers, seeds);
  const std::string summary = workers->facts().summary();
  check(argc < 3 || summary.find(argv[2]) != std::string::npos, "'{}', not '{}'", summary,
        argc < 3 ? "" : argv[2]);
  if (workers->rank() == Rank{0}) {
    fmt::print("all cases passed: {}\n", summary);
  }
  return 0;
}

}  // namespace
}  // namespace starling::test

int main(int argc, char** argv) {
  return starling::test::guarded(starling::test::main_of, argc, argv);
}
