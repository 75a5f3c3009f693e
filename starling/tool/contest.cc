#include "starling/tool/contest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "starling/base/error.h"
#include "starling/launch/launch.h"
#include "starling/tool/programs.h"
#include "starling/tool/temporary_folder.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;

// Small buffers are quick, and their times scatter more.
int repetitions_of(std::size_t bytes) { return bytes <= 65536 ? 100 : bytes <= 8'000'000 ? 20 : 3; }

std::vector<std::string> measuring(const ContestPlan& plan, const std::string& contestant) {
  std::vector<int> repetitions;
  for (const std::size_t bytes : plan.bytes) {
    repetitions.push_back(repetitions_of(bytes));
  }
  std::vector<std::string> words = {find_program("rivals", "average_" + contestant),
                                    "--bytes",
                                    fmt::format("{}", fmt::join(plan.bytes, ",")),
                                    "--repetitions",
                                    fmt::format("{}", fmt::join(repetitions, ",")),
                                    "--warmup",
                                    "3"};
  if (plan.is_private) {
    words.emplace_back("--private");
  }
  return words;
}

// How each of them is started: as workers of `starling run`, or by a launcher of its own.
launch::Options start_of(const ContestPlan& plan, const std::string& contestant,
                         std::size_t workers, const TemporaryFolder& folder) {
  launch::Options options;
  options.command = measuring(plan, contestant);
  if (contestant == "mpi") {
    // With more ranks than cores it has to yield, or every hop takes a slice of the scheduler.
    std::vector<std::string> mpirun = {"mpirun", "--allow-run-as-root",  "--oversubscribe",
                                       "--mca",  "mpi_yield_when_idle",  "1",
                                       "-n",     std::to_string(workers)};
    options.command.insert(options.command.begin(), mpirun.begin(), mpirun.end());
  } else if (contestant == "memory") {
    options.command.insert(options.command.end(), {"--workers", std::to_string(workers)});
  } else {
    options.workers = workers;
  }
  if (contestant == "gloo") {
    const std::string store = (folder.path() / "gloo").string();
    fs::remove_all(store);
    fs::create_directory(store);
    options.command.insert(options.command.end(), {"--store", store});
  }
  return options;
}

void add(std::vector<ContestCase>& cases, std::size_t workers, const std::string& contestant,
         const nlohmann::json& line) {
  const std::size_t bytes = line.at("bytes");
  for (ContestCase& one : cases) {
    if (one.workers == workers && one.bytes == bytes) {
      Measured& measured = one.by_contestant[contestant];
      for (const double seconds : line.at("seconds")) {
        measured.seconds.push_back(seconds);
      }
      measured.cpu_seconds += line.at("cpu_seconds").get<double>();
      measured.elapsed_seconds += line.at("elapsed_seconds").get<double>();
    }
  }
}

void run_one(const ContestPlan& plan, const std::string& contestant, std::size_t workers,
             const TemporaryFolder& folder, std::vector<ContestCase>& cases) {
  run_program(start_of(plan, contestant, workers, folder),
              fmt::format("{} with {} workers", contestant, workers),
              [&](const nlohmann::json& line) { add(cases, workers, contestant, line); });
}

}  // namespace

double Measured::percentile(double share) const {
  check(!seconds.empty(), "nothing was measured");
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const auto at =
      static_cast<std::size_t>(std::llround(share * static_cast<double>(sorted.size() - 1)));
  return sorted[at];
}

std::vector<std::string> contestants() { return {"starling", "mpi", "gloo", "memory"}; }

std::vector<ContestCase> hold_contest(const ContestPlan& plan,
                                      const std::function<void(const std::string&)>& progress) {
  const TemporaryFolder folder;
  std::vector<ContestCase> cases;
  for (const std::size_t workers : plan.workers) {
    for (const std::size_t bytes : plan.bytes) {
      cases.push_back({.workers = workers, .bytes = bytes, .by_contestant = {}});
    }
  }
  for (int round = 0; round < plan.rounds; ++round) {
    for (const std::size_t workers : plan.workers) {
      for (const std::string& contestant : plan.contestants) {
        progress(fmt::format("round {} of {}: {} workers, {}", round + 1, plan.rounds, workers,
                             contestant));
        run_one(plan, contestant, workers, folder, cases);
      }
    }
  }
  return cases;
}

}  // namespace starling::tool
