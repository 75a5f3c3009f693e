#include "starling/tool/measured_run.h"

#include <cmath>

#include "starling/base/error.h"

namespace starling::tool {
namespace {

std::optional<double> number_in(const nlohmann::json& object, const char* name) {
  const nlohmann::json& value = object.at(name);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

std::uint64_t warm_up_of(const nlohmann::json& summary) {
  return summary.value("warm_up_steps", std::uint64_t{0});
}

}  // namespace

double step_seconds_of(const nlohmann::json& summary) {
  const std::uint64_t timed = summary.at("steps").get<std::uint64_t>() - warm_up_of(summary);
  return summary.at("train_seconds").get<double>() / static_cast<double>(timed);
}

MeasuredRun measured_run(const nlohmann::json& summary) {
  require(!summary.at("test_accuracy").is_null(), "{}: there is no accuracy in its summary",
          summary.value("folder", ""));
  MeasuredRun run;
  run.seed = summary.at("seed");
  run.steps = summary.at("steps");
  run.accuracy = summary.at("test_accuracy");
  run.loss = number_in(summary, "test_loss");
  run.seconds = summary.at("train_seconds");
  run.samples_per_second = summary.at("samples_per_second");
  run.step_seconds = step_seconds_of(summary);
  run.waiting = summary.at("waited_seconds").get<double>() / run.seconds;
  run.stale_fraction = summary.at("stale_fraction");
  run.consensus = number_in(summary, "consensus_relative");
  run.lost = summary.at("lost").size();
  for (const nlohmann::json& evaluation : summary.at("evaluations")) {
    if (const std::uint64_t warm_up = warm_up_of(summary);
        warm_up > 0 && evaluation.at("step") <= warm_up) {
      continue;
    }
    run.evaluations.push_back({.step = evaluation.at("step"),
                               .seconds = evaluation.at("train_seconds"),
                               .accuracy = evaluation.at("test_accuracy"),
                               .loss = number_in(evaluation, "test_loss")});
  }
  return run;
}

bool is_off_budget(const MeasuredRun& run) {
  constexpr double kTolerance = 0.1;
  return run.budget && std::abs(run.seconds / *run.budget - 1) > kTolerance;
}

bool has_curve(const MeasuredRun& run) { return run.evaluations.size() > 1; }

std::optional<double> time_to_loss(const MeasuredRun& run, double target) {
  if (!has_curve(run)) {
    return std::nullopt;
  }
  const MeasuredRun::Evaluation* before = nullptr;
  for (const MeasuredRun::Evaluation& now : run.evaluations) {
    if (now.loss && *now.loss <= target) {
      if (before == nullptr || !before->loss) {
        return now.seconds;
      }
      const double part = (*before->loss - target) / (*before->loss - *now.loss);
      return before->seconds + part * (now.seconds - before->seconds);
    }
    before = &now;
  }
  return std::nullopt;
}

}  // namespace starling::tool
