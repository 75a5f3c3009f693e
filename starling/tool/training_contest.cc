#include "starling/tool/training_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "starling/base/error.h"
#include "starling/tool/programs.h"
#include "starling/tool/temporary_folder.h"
#include "starling/tool/training_run.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;

std::uint64_t usual_steps(const std::string& model) { return model == "mlp" ? 600 : 80; }
// Memory is touched, caches and learnt times are as they stay.
std::uint64_t warm_up_of(std::uint64_t steps) { return std::max<std::uint64_t>(steps / 10, 5); }

double run_ddp(const TrainingPlan& plan, const TrainingRow& row, const fs::path& store) {
  launch::Options options;
  options.workers = plan.workers;
  options.command = {find_program("rivals", "train_ddp.py"),
                     "--model",
                     row.model,
                     "--steps",
                     fmt::format("{}", row.steps),
                     "--warm-up-steps",
                     fmt::format("{}", warm_up_of(row.steps)),
                     "--store",
                     store.string()};
  double samples_per_second = 0;
  run_program(options, fmt::format("{}, ddp with {} workers", row.model, plan.workers),
              [&](const nlohmann::json& line) {
                samples_per_second = line.at("samples_per_second").get<double>();
              });
  require(samples_per_second > 0, "{}, ddp: nothing was measured", row.model);
  return samples_per_second;
}

double run_one(const TrainingPlan& plan, const TrainingRow& row, const fs::path& place) {
  if (row.algorithm == kDdp) {
    return run_ddp(plan, row, place);
  }
  const nlohmann::json summary = run_training({.workers = plan.workers,
                                               .model = row.model,
                                               .algorithm = row.algorithm,
                                               .steps = row.steps,
                                               .warm_up_steps = warm_up_of(row.steps)},
                                              place);
  return summary.at("samples_per_second").get<double>();
}

std::vector<TrainingRow> rows_of(const TrainingPlan& plan) {
  std::vector<TrainingRow> rows;
  for (const std::string& model : plan.models) {
    std::vector<std::string> names = {std::string(kDdp), std::string(kAlone)};
    names.insert(names.end(), plan.algorithms.begin(), plan.algorithms.end());
    for (const std::string& name : names) {
      rows.push_back({.model = model,
                      .algorithm = name,
                      .steps = plan.steps.value_or(usual_steps(model)),
                      .samples_per_second = {}});
    }
  }
  return rows;
}

}  // namespace

double median(std::vector<double> values) {
  check(!values.empty(), "the median of nothing");
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

double ratio(const TrainingRow& row, const TrainingRow& other) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < row.samples_per_second.size(); ++round) {
    ratios.push_back(row.samples_per_second[round] / other.samples_per_second[round]);
  }
  return median(ratios);
}

std::vector<TrainingRow> hold_training_contest(
    const TrainingPlan& plan, const std::function<void(const std::string&)>& progress) {
  const TemporaryFolder folder;
  std::vector<TrainingRow> rows = rows_of(plan);
  const std::size_t per_model = rows.size() / plan.models.size();
  for (int round = 0; round < plan.rounds; ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t within = i % per_model;
      TrainingRow& row = rows[i - within + (round % 2 == 0 ? within : per_model - 1 - within)];
      progress(
          fmt::format("round {} of {}: {}, {}", round + 1, plan.rounds, row.model, row.algorithm));
      const fs::path place = folder.path() / fmt::format("{}-{}", round, i);
      row.samples_per_second.push_back(run_one(plan, row, place));
      fs::remove_all(place);
    }
  }
  return rows;
}

}  // namespace starling::tool
