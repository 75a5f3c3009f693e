// What a schedule costs: one worker's row at a step of 4,096 workers (target: under 1 µs), and the
// whole analysis of 1,024 (target: under 2 s) and, on request, of any number.
//   topology_bench [WORKERS of the analysis]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "starling/base/time.h"
#include "starling/topology/analysis.h"

namespace {

using starling::Rank;
using starling::Step;
using starling::topology::analyse;
using starling::topology::make_schedule;
using starling::topology::Schedule;
using starling::topology::ScheduleOptions;
using starling::topology::View;

struct Case {
  std::string name;
  std::uint32_t per_node = 1;
  std::uint32_t group_size = 1;
  std::uint32_t peers = 1;
  std::uint32_t fewer = 0;  // workers less than the round number

  ScheduleOptions options(std::uint32_t workers) const {
    return {.workers = workers - fewer,
            .per_node = per_node,
            .group_size = group_size,
            .peers = peers,
            .seed = 1};
  }
};

std::vector<Case> cases(std::uint32_t workers) {
  const std::uint32_t root = starling::topology::default_group_size(workers);
  return {{.name = "complete"},
          {.name = "ring"},
          {.name = "ring", .fewer = 1},
          {.name = "ring-neighbours"},
          {.name = "exponential"},
          {.name = "exponential", .fewer = 1},
          {.name = "push", .peers = 2},
          {.name = "aer", .per_node = 8},
          {.name = "aer", .per_node = 8, .fewer = 8},
          {.name = "groups", .group_size = root},
          {.name = "groups", .group_size = root, .fewer = 4},
          {.name = "groups", .group_size = root, .fewer = 3},
          {.name = "fixed-groups", .group_size = root},
          {.name = "pairs"},
          {.name = "base-k"},
          {.name = "base-k", .peers = 2, .fewer = 1}};
}

// Nanoseconds for one row: the best and the median of 50 batches over changing steps and ranks.
struct Timing {
  double best = 0;
  double median = 0;
};

Timing time_rows(const Schedule& schedule, const View& view) {
  constexpr int kBatches = 50;
  constexpr std::uint32_t kRows = 1000;
  std::vector<double> times;
  std::uint64_t sink = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < kRows; ++i) {
      const auto row = schedule.row(Step{batch + i}, view.at(i * 977 % view.count()), view);
      sink += row.index();
    }
    const auto end = std::chrono::steady_clock::now();
    times.push_back(starling::seconds(end - begin) * 1e9 / kRows);
  }
  std::sort(times.begin(), times.end());
  return {times.front() + (sink == ~0ull ? 1 : 0), times[kBatches / 2]};
}

void bench_rows() {
  constexpr std::uint32_t kWorkers = 4096;
  fmt::print("one worker's row, 4,096 workers or a few fewer; target < 1000 ns\n");
  fmt::print("{:<16} {:>8} {:>9} {:>8} {:>7} {:>10} {:>10}\n", "schedule", "workers", "per-node",
             "group", "peers", "best ns", "median ns");
  for (const Case& c : cases(kWorkers)) {
    const ScheduleOptions options = c.options(kWorkers);
    const auto schedule = make_schedule(c.name, options);
    const Timing t = time_rows(*schedule, View::full(options.workers));
    fmt::print("{:<16} {:>8} {:>9} {:>8} {:>7} {:>10.0f} {:>10.0f}\n", c.name, options.workers,
               c.per_node, c.group_size, c.peers, t.best, t.median);
  }
}

void bench_analysis(std::uint32_t workers) {
  fmt::print("\nwhole analysis, about {} workers; target < 2 s at 1,024\n", workers);
  fmt::print("{:<16} {:>8} {:>9} {:>8} {:>7} {:>10} {:>12}\n", "schedule", "workers", "per-node",
             "group", "peers", "seconds", "stationary");
  for (const Case& c : cases(workers)) {
    const ScheduleOptions options = c.options(workers);
    const auto schedule = make_schedule(c.name, options);
    const auto begin = std::chrono::steady_clock::now();
    const auto analysis = analyse(*schedule, View::full(options.workers));
    const double took = starling::seconds(std::chrono::steady_clock::now() - begin);
    fmt::print("{:<16} {:>8} {:>9} {:>8} {:>7} {:>10.3f} {:>12}\n", c.name, options.workers,
               c.per_node, c.group_size, c.peers, took,
               analysis.stationary ? fmt::format("{:.6g}", *analysis.stationary) : "-");
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench_rows();
  bench_analysis(argc > 1 ? static_cast<std::uint32_t>(std::atoi(argv[1])) : 1024);
}
