#include "starling/workload/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "starling/workload/run_folder.h"

namespace starling::workload {
namespace {

using nlohmann::ordered_json;

enum Field : std::size_t {
  AtTrainSeconds,
  AtStepSeconds,
  AtMedian,
  AtSlowest,
  AtLoss,
  AtWaited,
  AtStale,
  AtSkipped,
  AtVoid,
  AtBytes,
  AtCopies,
  AtSteps,
  AtMetricsLost,
  AtLedgerLost,
  AtFields
};

// Not a number is null in JSON.
ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json();
}

ordered_json whole(double value) { return std::llround(value); }

}  // namespace

void StepStatistics::add(double seconds, double loss) {
  seconds_.push_back(static_cast<float>(seconds));
  losses_.push_back(static_cast<float>(loss));
}

void StepStatistics::add_loss_before(double loss) { losses_.push_back(static_cast<float>(loss)); }

double StepStatistics::recent_loss() const {
  const std::size_t count = std::max<std::size_t>(1, losses_.size() / 10);
  if (losses_.empty()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  double sum = 0;
  for (std::size_t i = losses_.size() - count; i < losses_.size(); ++i) {
    sum += losses_[i];
  }
  return sum / static_cast<double>(count);
}

double StepStatistics::mean_seconds() const {
  double sum = 0;
  for (const float value : seconds_) {
    sum += value;
  }
  return seconds_.empty() ? 0 : sum / static_cast<double>(seconds_.size());
}

double StepStatistics::quantile_seconds(double q) const {
  if (seconds_.empty()) {
    return 0;
  }
  std::vector<float> sorted = seconds_;
  const auto at =
      static_cast<std::ptrdiff_t>(std::lround(q * static_cast<double>(sorted.size() - 1)));
  std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
  return sorted[static_cast<std::size_t>(at)];
}

std::vector<double> record_of(const StepStatistics& steps, const train::Totals& totals,
                              double train_seconds, FilesLost lost) {
  std::vector<double> record(AtFields);
  record[AtTrainSeconds] = train_seconds;
  record[AtStepSeconds] = steps.mean_seconds();
  record[AtMedian] = steps.quantile_seconds(0.5);
  record[AtSlowest] = steps.quantile_seconds(0.99);
  record[AtLoss] = steps.recent_loss();
  record[AtWaited] = totals.waited.count();
  record[AtStale] = totals.stale_fraction;
  record[AtSkipped] = static_cast<double>(totals.skipped);
  record[AtVoid] = static_cast<double>(totals.void_rounds);
  record[AtBytes] = static_cast<double>(totals.bytes);
  record[AtCopies] = static_cast<double>(totals.model_copies);
  record[AtSteps] = static_cast<double>(totals.steps);
  record[AtMetricsLost] = lost.metrics ? 1 : 0;
  record[AtLedgerLost] = lost.ledger ? 1 : 0;
  return record;
}

ordered_json json_of(const Evaluation& evaluation) {
  return {{"step", evaluation.step},
          {"train_seconds", evaluation.time.count()},
          {"test_accuracy", evaluation.accuracy},
          {"test_loss", number(evaluation.loss)},
          {"consensus_distance", number(evaluation.consensus.distance)},
          {"consensus_relative", number(evaluation.consensus.relative)}};
}

Evaluation evaluation_of(const ordered_json& json) {
  const auto value = [&](const char* name) {
    return json.at(name).is_null() ? std::nan("") : json.at(name).get<double>();
  };
  return {.step = json.at("step").get<std::uint64_t>(),
          .accuracy = value("test_accuracy"),
          .loss = value("test_loss"),
          .consensus = {.distance = value("consensus_distance"),
                        .relative = value("consensus_relative")},
          .time = Seconds(value("train_seconds"))};
}

ordered_json results_of(const Meetings::Records& records, double samples) {
  std::vector<double> sum(AtFields);
  std::vector<double> most(AtFields);
  std::vector<std::size_t> lost;
  ordered_json files_lost = ordered_json::array();
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    if (!records[rank]) {
      lost.push_back(rank);
      continue;
    }
    for (std::size_t field = 0; field < AtFields; ++field) {
      sum[field] += (*records[rank])[field];
      most[field] = std::max(most[field], (*records[rank])[field]);
    }
    const Rank worker{static_cast<std::uint32_t>(rank)};
    if ((*records[rank])[AtMetricsLost] != 0) {
      files_lost.push_back(metrics_file("", worker).string());
    }
    if ((*records[rank])[AtLedgerLost] != 0) {
      files_lost.push_back(ledger_file("", worker).string());
    }
  }
  const std::size_t left = records.size() - lost.size();
  const auto mean = [&](Field field) { return sum[field] / static_cast<double>(left); };
  return {{"workers", records.size()},
          {"workers_left", left},
          {"lost", lost},
          {"samples", whole(samples)},
          {"train_seconds", most[AtTrainSeconds]},
          {"samples_per_second", samples / most[AtTrainSeconds]},
          {"step_seconds", mean(AtStepSeconds)},
          {"step_seconds_p50", mean(AtMedian)},
          {"step_seconds_p99", most[AtSlowest]},
          {"waited_seconds", mean(AtWaited)},
          {"train_loss", number(mean(AtLoss))},
          {"stale_fraction", mean(AtStale)},
          {"skipped_steps", whole(sum[AtSkipped])},
          {"void_rounds", whole(sum[AtVoid])},
          {"bytes_per_step", mean(AtSteps) > 0 ? mean(AtBytes) / mean(AtSteps) : 0},
          {"model_copies", whole(most[AtCopies])},
          {"files_lost", files_lost}};
}

std::string text_of_summary(const ordered_json& summary) {
  const auto value = [&](const char* name) {
    return summary[name].is_null() ? std::nan("") : summary[name].get<double>();
  };
  std::string text;
  if (!summary["test_accuracy"].is_null()) {
    text = fmt::format(
        "test accuracy {:.4f}, loss {:.4f}: the average of {} worker{}, consensus distance "
        "{:.3g}\n",
        value("test_accuracy"), value("test_loss"), summary["workers_left"].get<std::size_t>(),
        summary["workers_left"] == 1 ? "" : "s", value("consensus_distance"));
  }
  const std::string predicted =
      summary.contains("predicted_step_seconds") && !summary["predicted_step_seconds"].is_null()
          ? fmt::format(" (by the model {:.2f})", 1e3 * value("predicted_step_seconds"))
          : "";
  const std::uint64_t untimed = std::max(summary.value("warm_up_steps", std::uint64_t{0}),
                                         summary.value("resumed_from", std::uint64_t{0}));
  return text + fmt::format(
                    "{} steps in {:.2f} s: {:.0f} samples/s, {:.2f} ms a step{}, stale {:.1f} %\n"
                    "{}/summary.json\n",
                    summary["steps"].get<std::uint64_t>() - untimed, value("train_seconds"),
                    value("samples_per_second"), 1e3 * value("step_seconds"), predicted,
                    100 * value("stale_fraction"), summary["folder"].get<std::string>());
}

}  // namespace starling::workload
