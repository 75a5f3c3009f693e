#include "starling/tool/bench_train_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "starling/base/error.h"
#include "starling/tool/progress_line.h"
#include "starling/tool/suggest.h"
#include "starling/tool/training_contest.h"
#include "starling/tool/training_run.h"
#include "starling/topology/algorithm.h"

namespace starling::tool {
namespace {

using nlohmann::ordered_json;

struct Request {
  TrainingPlan plan;
  std::int64_t steps = 0;  // 0: as many as suit the model
  bool json = false;
};

constexpr int kBatch = 64;  // the trainer's default, and the rival's

// What is aimed at: at least so many times the samples per second of another row.
struct Goal {
  std::string_view model;
  std::string_view algorithm;
  std::string_view rival;
  double at_least;
};
constexpr Goal kGoals[] = {
    {"mlp", "dadam", kDdp, 1.8},    {"mlp", "dadam", kAlone, 0.85},
    {"mlp", "starling", kDdp, 1.8}, {"mlp", "starling", kAlone, 0.85},
    {"cnn", "dadam", kAlone, 0.95}, {"cnn", "starling", kAlone, 0.95},
    {"mlp", "all-reduce", kDdp, 1}, {"cnn", "all-reduce", kDdp, 1},
};

// A row with what it comes to.
struct Result {
  const TrainingRow* row;
  double of_ddp = 1;
  double of_alone = 1;
  std::vector<Goal> goals = {};

  double reached(const Goal& goal) const { return goal.rival == kDdp ? of_ddp : of_alone; }
  bool met(const Goal& goal) const { return reached(goal) >= goal.at_least; }
};

void require_known(const TrainingPlan& plan) {
  const std::vector<std::string> models = {"mlp", "cnn"};
  for (const std::string& model : plan.models) {
    require(std::find(models.begin(), models.end(), model) != models.end(), "--model: {}",
            unknown("model", model, models));
  }
  for (const std::string& algorithm : plan.algorithms) {
    topology::find_algorithm(algorithm);
  }
}

std::vector<Result> results_of(const std::vector<TrainingRow>& rows) {
  std::vector<Result> results;
  const TrainingRow* ddp = nullptr;
  const TrainingRow* alone = nullptr;
  for (const TrainingRow& row : rows) {  // ddp and alone come first
    ddp = row.algorithm == kDdp ? &row : ddp;
    alone = row.algorithm == kAlone ? &row : alone;
    if (row.algorithm != kDdp && row.algorithm != kAlone) {
      results.push_back({&row, ratio(row, *ddp), ratio(row, *alone)});
      for (const Goal& goal : kGoals) {
        if (goal.model == row.model && goal.algorithm == row.algorithm) {
          results.back().goals.push_back(goal);
        }
      }
    } else if (&row == alone) {
      results.push_back({&row, ratio(row, *ddp), 1});
    } else {
      results.push_back({&row, 1, 0});
    }
  }
  // Of ddp to alone, which comes after it.
  for (std::size_t i = 0; i + 1 < results.size(); ++i) {
    if (results[i].row->algorithm == kDdp) {
      results[i].of_alone = ratio(*results[i].row, *results[i + 1].row);
    }
  }
  return results;
}

double step_seconds(const TrainingRow& row, std::size_t workers) {
  return kBatch * static_cast<double>(workers) / median(row.samples_per_second);
}

std::string name_of(const TrainingRow& row) {
  if (row.algorithm == kDdp) {
    return "PyTorch DDP, Gloo";
  }
  const std::vector<std::string> pairs = pairs_of(row.algorithm);
  return pairs.empty() ? row.algorithm : fmt::format("{} {}", row.algorithm, fmt::join(pairs, " "));
}

void print_table(const TrainingPlan& plan, const std::vector<Result>& results) {
  fmt::print(
      "{} workers on {} cores train with AdamW, batches of {}, one thread each; {} rounds in "
      "turns.\n"
      "Samples per second of all workers, the median; ratios are the median of those of each "
      "round.\n"
      "alone: the same workers and fused optimizer without communication.\n\n",
      plan.workers, std::thread::hardware_concurrency(), kBatch, plan.rounds);
  fmt::print("{:<5} {:<31} {:>9} {:>8} {:>8} {:>9}  {}\n", "", "", "samples/s", "ms/step", "x DDP",
             "x alone", "goal");
  std::string model;
  for (const Result& result : results) {
    std::vector<std::string> goals;
    for (const Goal& goal : result.goals) {
      goals.push_back(fmt::format("{:g} x {}: {}", goal.at_least,
                                  goal.rival == kDdp ? "DDP" : "alone",
                                  result.met(goal) ? "met" : "NOT met"));
    }
    const TrainingRow& row = *result.row;
    fmt::print("{:<5} {:<31} {:>9.0f} {:>8.2f} {:>8.2f} {:>9.2f}  {}\n",
               row.model == model ? "" : row.model, name_of(row), median(row.samples_per_second),
               1e3 * step_seconds(row, plan.workers), result.of_ddp, result.of_alone,
               fmt::join(goals, ", "));
    model = row.model;
  }
}

ordered_json json_of(const TrainingPlan& plan, const std::vector<Result>& results) {
  ordered_json rows = ordered_json::array();
  for (const Result& result : results) {
    ordered_json goals = ordered_json::array();
    for (const Goal& goal : result.goals) {
      goals.push_back({{"of", goal.rival},
                       {"at_least", goal.at_least},
                       {"reached", result.reached(goal)},
                       {"met", result.met(goal)}});
    }
    const TrainingRow& row = *result.row;
    rows.push_back({{"model", row.model},
                    {"algorithm", row.algorithm},
                    {"options", fmt::format("{}", fmt::join(pairs_of(row.algorithm), " "))},
                    {"steps", row.steps},
                    {"samples_per_second", median(row.samples_per_second)},
                    {"step_seconds", step_seconds(row, plan.workers)},
                    {"of_ddp", result.of_ddp},
                    {"of_alone", result.of_alone},
                    {"by_round", row.samples_per_second},
                    {"goals", std::move(goals)}});
  }
  return {{"workers", plan.workers},
          {"batch", kBatch},
          {"rounds", plan.rounds},
          {"cores", std::thread::hardware_concurrency()},
          {"rows", std::move(rows)}};
}

void run(const Request& request) {
  TrainingPlan plan = request.plan;
  require_known(plan);
  if (request.steps > 0) {
    plan.steps = static_cast<std::uint64_t>(request.steps);
  }
  std::vector<TrainingRow> rows;
  {
    ProgressLine line;
    rows = hold_training_contest(plan, [&](const std::string& text) { line.show(text); });
  }
  const std::vector<Result> results = results_of(rows);
  if (request.json) {
    fmt::print("{}\n", json_of(plan, results).dump());
  } else {
    print_table(plan, results);
  }
}

}  // namespace

void add_bench_train_command(CLI::App& bench) {
  CLI::App* train = bench.add_subcommand(
      "train",
      "Train models on this machine, against PyTorch's DistributedDataParallel and against workers "
      "that do not communicate");
  auto request = std::make_shared<Request>();
  train->add_option("-n,--workers", request->plan.workers, "Processes on this machine")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  train->add_option("--model,--models", request->plan.models, "mlp, cnn")
      ->delimiter(',')
      ->capture_default_str();
  train->add_option("--algorithms", request->plan.algorithms, "What is compared")
      ->delimiter(',')
      ->capture_default_str();
  train
      ->add_option("--steps", request->steps,
                   "Timed steps of each run; default: 600 of mlp, 80 of cnn")
      ->check(CLI::Range(1, 1'000'000));
  train->add_option("--rounds", request->plan.rounds, "How often all of them take their turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  train->add_flag("--json", request->json, "Print JSON");
  train->callback([request] { run(*request); });
}

}  // namespace starling::tool
