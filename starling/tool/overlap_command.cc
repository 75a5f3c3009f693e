#include "starling/tool/overlap_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/tool/progress_line.h"
#include "starling/tool/temporary_folder.h"
#include "starling/tool/timeline.h"
#include "starling/tool/training_contest.h"
#include "starling/tool/training_run.h"
#include "starling/topology/algorithm.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Request {
  std::uint32_t workers = 4;
  std::string model = "mlp";
  std::string compute = "0.010:0.020";
  std::vector<std::string> algorithms = {"dadam", "starling"};
  std::uint64_t steps = 150;
  int rounds = 3;
  bool json = false;
};

constexpr std::uint64_t kWarmUp = 10;
constexpr double kMostAbove = 0.03;    // of compute and update
constexpr double kLeastInTime = 0.95;  // of the steps
constexpr std::size_t kDrawn = 3;      // steps

struct Row {
  std::string algorithm;
  std::vector<double> step_seconds = {};  // by round; mean over steps and workers
  // Of all steps, workers and rounds.
  std::vector<double> exchange_seconds = {};
  std::vector<double> spare_seconds = {};  // from the end of the exchange to that of the step
  std::size_t in_time = 0;
  std::size_t counted = 0;
  std::string drawing = "";  // of worker 0 in the last round

  double in_time_share() const {
    return static_cast<double>(in_time) / static_cast<double>(std::max<std::size_t>(counted, 1));
  }
};

void read_worker(Row& row, const fs::path& folder, Rank worker) {
  const std::vector<StepSpan> steps = read_timeline(folder, worker, kWarmUp);
  for (const StepSpan& step : steps) {
    ++row.counted;
    row.in_time += in_time(step) ? 1 : 0;
    if (step.exchange) {
      row.exchange_seconds.push_back(seconds(step.exchange->second - step.exchange->first));
      row.spare_seconds.push_back(seconds(step.end - step.exchange->second));
    }
  }
  if (worker == Rank{0} && steps.size() >= kDrawn) {
    row.drawing = draw_timeline(std::span(steps).subspan((steps.size() - kDrawn) / 2, kDrawn));
  }
}

void run_one(const Request& request, Row& row, const fs::path& folder) {
  const nlohmann::json summary = run_training({.workers = request.workers,
                                               .model = request.model,
                                               .algorithm = row.algorithm,
                                               .steps = request.steps,
                                               .warm_up_steps = kWarmUp,
                                               .options = {"--emulate-compute", request.compute}},
                                              folder);
  row.step_seconds.push_back(summary.at("step_seconds").get<double>());
  for (std::uint32_t r = 0; r < request.workers && row.algorithm != kAlone; ++r) {
    read_worker(row, folder, Rank{r});
  }
}

// How much longer a step takes than computing and updating, as a fraction; by round.
double above(const Row& row, const Row& alone) {
  std::vector<double> parts;
  for (std::size_t round = 0; round < row.step_seconds.size(); ++round) {
    parts.push_back(row.step_seconds[round] / alone.step_seconds[round] - 1);
  }
  return median(parts);
}

void print_table(const Request& request, const std::vector<Row>& rows) {
  fmt::print(
      "{} workers sleep {} s (forward:backward) in place of computing {}; updates and exchanges\n"
      "are real. alone: compute and update. Medians of {} rounds in turns; an exchange was in time "
      "if\nits step waited less than 0.1 ms for it.\n\n",
      request.workers, request.compute, request.model, request.rounds);
  fmt::print("{:<11} {:>8} {:>12} {:>13} {:>12} {:>9}  {}\n", "", "ms/step", "above alone",
             "exchange, ms", "to spare, ms", "in time", "goals: 3 %, 95 %");
  const Row& alone = rows.front();
  for (const Row& row : rows) {
    const double ms = 1e3 * median(row.step_seconds);
    if (row.counted == 0) {
      fmt::print("{:<11} {:>8.2f}\n", row.algorithm, ms);
      continue;
    }
    fmt::print("{:<11} {:>8.2f} {:>10.2f} % {:>13.2f} {:>12.2f} {:>7.1f} %  {}, {}\n",
               row.algorithm, ms, 100 * above(row, alone), 1e3 * median(row.exchange_seconds),
               1e3 * median(row.spare_seconds), 100 * row.in_time_share(),
               above(row, alone) <= kMostAbove ? "met" : "NOT met",
               row.in_time_share() >= kLeastInTime ? "met" : "NOT met");
  }
  for (const Row& row : rows) {
    if (!row.drawing.empty()) {
      fmt::print("\n{}: {} steps of worker 0\n{}", row.algorithm, kDrawn, row.drawing);
    }
  }
}

ordered_json json_of(const Request& request, const std::vector<Row>& rows) {
  ordered_json list = ordered_json::array();
  for (const Row& row : rows) {
    ordered_json& one = list.emplace_back();
    one = {{"algorithm", row.algorithm}, {"step_seconds", median(row.step_seconds)}};
    if (row.counted > 0) {
      one["above_alone"] = above(row, rows.front());
      one["exchange_seconds"] = median(row.exchange_seconds);
      one["spare_seconds"] = median(row.spare_seconds);
      one["in_time"] = row.in_time_share();
      one["steps"] = row.counted;
    }
  }
  return {{"workers", request.workers},
          {"model", request.model},
          {"compute", request.compute},
          {"rounds", request.rounds},
          {"rows", std::move(list)}};
}

void run(const Request& request) {
  std::vector<Row> rows = {{.algorithm = std::string(kAlone)}};
  for (const std::string& name : request.algorithms) {
    topology::find_algorithm(name);
    rows.push_back({.algorithm = name});
  }
  {
    ProgressLine line;
    const TemporaryFolder folder;
    for (int round = 0; round < request.rounds; ++round) {
      for (Row& row : rows) {
        line.show(fmt::format("round {} of {}: {}", round + 1, request.rounds, row.algorithm));
        const fs::path place = folder.path() / fmt::format("{}-{}", round, row.algorithm);
        run_one(request, row, place);
        fs::remove_all(place);
      }
    }
  }
  if (request.json) {
    fmt::print("{}\n", json_of(request, rows).dump());
  } else {
    print_table(request, rows);
  }
}

}  // namespace

void add_overlap_command(CLI::App& bench) {
  CLI::App* overlap = bench.add_subcommand(
      "overlap", "What an exchange costs a step that computes for longer than it takes");
  auto request = std::make_shared<Request>();
  overlap->add_option("-n,--workers", request->workers, "Processes on this machine")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  overlap
      ->add_option("--model", request->model, "mlp, cnn, small-cnn or resnet20: what is exchanged")
      ->capture_default_str();
  overlap
      ->add_option("--compute", request->compute,
                   "FORWARD:BACKWARD[:CV]: seconds slept in place of computing")
      ->capture_default_str();
  overlap->add_option("--algorithms", request->algorithms, "What is compared with no communication")
      ->delimiter(',')
      ->capture_default_str();
  overlap->add_option("--steps", request->steps, "Timed steps of each run")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  overlap->add_option("--rounds", request->rounds, "How often all of them take their turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  overlap->add_flag("--json", request->json, "Print JSON");
  overlap->callback([request] { run(*request); });
}

}  // namespace starling::tool
