#include "starling/tool/comparison_report.h"

#include <algorithm>

namespace starling::tool {
namespace {

using Values = std::vector<double>;

std::optional<Estimate> estimate(const Values& values) {
  if (values.empty()) {
    return std::nullopt;
  }
  return Estimate{.mean = mean_of(values), .interval = interval_of(values)};
}

std::optional<Estimate> estimate_ratio(const Values& values) {
  if (values.empty()) {
    return std::nullopt;
  }
  return Estimate{.mean = geometric_mean_of(values), .interval = interval_of_ratios(values)};
}

template <typename Field>
std::optional<Estimate> estimate_of(const std::vector<MeasuredRun>& runs, Field field) {
  Values values;
  for (const MeasuredRun& run : runs) {
    if (const std::optional<double> value = field(run)) {
      values.push_back(*value);
    }
  }
  return values.size() == runs.size() ? estimate(values) : std::nullopt;
}

const MeasuredRun* run_of(const Outcomes* outcomes, std::uint64_t seed) {
  if (outcomes == nullptr) {
    return nullptr;
  }
  const auto found = std::find_if(outcomes->runs.begin(), outcomes->runs.end(),
                                  [&](const MeasuredRun& run) { return run.seed == seed; });
  return found == outcomes->runs.end() ? nullptr : &*found;
}

// Of a run and the baseline of its pair; nothing without one that has a loss, nor without a curve.
std::optional<double> target_of(const MeasuredRun& run, const MeasuredRun* baseline,
                                const Yardstick& yardstick) {
  if (!has_curve(run)) {
    return std::nullopt;
  }
  if (yardstick.target_loss || baseline == nullptr) {
    return yardstick.target_loss;
  }
  return baseline->loss;
}

void describe_runs(Row& row) {
  const std::vector<MeasuredRun>& runs = row.outcomes->runs;
  using Run = const MeasuredRun&;
  row.accuracy = estimate_of(runs, [](Run run) { return std::optional(run.accuracy); });
  row.loss = estimate_of(runs, [](Run run) { return run.loss; });
  row.steps =
      estimate_of(runs, [](Run run) { return std::optional(static_cast<double>(run.steps)); });
  row.seconds = estimate_of(runs, [](Run run) { return std::optional(run.seconds); });
  row.samples_per_second =
      estimate_of(runs, [](Run run) { return std::optional(run.samples_per_second); });
  row.step_seconds = estimate_of(runs, [](Run run) { return std::optional(run.step_seconds); });
  row.waiting = estimate_of(runs, [](Run run) { return std::optional(run.waiting); });
  row.stale_fraction = estimate_of(runs, [](Run run) { return std::optional(run.stale_fraction); });
  row.consensus = estimate_of(runs, [](Run run) { return run.consensus; });
}

void compare_with(Row& row, const Outcomes* baseline, const Yardstick& yardstick) {
  Values differences;
  Values speeds;
  Values paces;
  Values times;
  for (const MeasuredRun& run : row.outcomes->runs) {
    const MeasuredRun* other = run_of(baseline, run.seed);
    const std::optional<double> target = target_of(run, other, yardstick);
    const std::optional<double> time = target ? time_to_loss(run, *target) : std::nullopt;
    row.targets += target ? 1 : 0;
    row.times_to_loss.push_back(time);
    if (time) {
      times.push_back(*time);
    }
    if (other == nullptr) {
      continue;
    }
    ++row.pairs;
    row.off_budget += (is_off_budget(run) ? 1 : 0);
    row.off_budget += (!row.is_baseline && is_off_budget(*other) ? 1 : 0);
    differences.push_back(run.accuracy - other->accuracy);
    speeds.push_back(run.samples_per_second / other->samples_per_second);
    const std::optional<double> others = target ? time_to_loss(*other, *target) : std::nullopt;
    if (time && others) {
      paces.push_back(*others / *time);
    }
  }
  row.reached = times.size();
  const bool all_reached = row.targets > 0 && row.reached == row.targets;
  row.time_to_loss = all_reached ? estimate(times) : std::nullopt;
  if (row.is_baseline) {
    return;
  }
  row.difference = estimate(differences);
  row.speed_ratio = estimate_ratio(speeds);
  row.time_to_loss_ratio = paces.size() == row.pairs ? estimate_ratio(paces) : std::nullopt;
  row.verdict = judge(interval_of(differences), yardstick.margin);
  if (row.time_to_loss_ratio) {
    row.pace = judge_pace(row.time_to_loss_ratio->interval);
  }
}

}  // namespace

std::vector<Row> rows_of(const std::vector<Outcomes>& outcomes, const Yardstick& yardstick) {
  const auto found = std::find_if(outcomes.begin(), outcomes.end(), [&](const Outcomes& each) {
    return each.name == yardstick.baseline;
  });
  const Outcomes* baseline = found == outcomes.end() ? nullptr : &*found;
  std::vector<Row> rows;
  for (const Outcomes& each : outcomes) {
    Row& row = rows.emplace_back();
    row.outcomes = &each;
    row.is_baseline = &each == baseline;
    describe_runs(row);
    compare_with(row, baseline, yardstick);
  }
  return rows;
}

}  // namespace starling::tool
