#include "starling/tool/plan_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "starling/base/units.h"

namespace starling::tool {
namespace {

using nlohmann::ordered_json;

// Milliseconds.
std::string interval_text(std::optional<double> half) {
  return half ? fmt::format("{:.2f}", 1e3 * *half) : "none";
}

std::string table(const model::Plan& plan) {
  std::string text =
      fmt::format("  {:<24} {:>7} {:>9} {:>8} {:>12} {:>10} {:>9} {:>7} {:>7} {:>6} {:>11}\n",
                  "predicted", "buckets", "ms/step", "± 95 %", "x all-reduce", "late, ms",
                  "exch., ms", "upd. ms", "hidden", "stale", "bytes/node");
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    const model::Choice& choice = plan.choices[i];
    const model::Prediction& p = choice.prediction;
    text += fmt::format(
        "{} {:<24} {:>7} {:>9.2f} {:>8} {:>12.2f} {:>10.2f} {:>9.2f} {:>7.2f} {:>5.0f} % "
        "{:>4.0f} "
        "% {:>11}{}\n",
        i == plan.recommended ? '*' : ' ', title(choice.candidate), choice.buckets, 1e3 * p.step,
        interval_text(p.interval), choice.speed_up, 1e3 * p.waiting.straggler,
        1e3 * p.waiting.exchange, 1e3 * p.update, 100 * p.overlap, 100 * p.stale,
        bytes_text(choice.bytes_per_node), choice.candidate.advisable ? "" : "  (for comparison)");
  }
  return text;
}

// The words of `starling train` that choose it.
std::string options_of(const model::Choice& choice) {
  const model::Candidate& candidate = choice.candidate;
  std::string text = fmt::format("--algorithm {}", candidate.algorithm->name);
  if (candidate.algorithm->schedules.size() > 1) {
    text += fmt::format(" --schedule {}", candidate.pattern.schedule);
  }
  if (candidate.pattern.group_size) {
    text += fmt::format(" --group-size {}", *candidate.pattern.group_size);
  }
  if (candidate.sync_period) {
    text += fmt::format(" --sync-period {}", *candidate.sync_period);
  }
  if (model::exchanges_in_buckets(*candidate.algorithm)) {
    text += fmt::format(" --bucket-bytes {}", choice.bucket_bytes);
  }
  return text;
}

std::string advice(const model::Plan& plan) {
  const model::Choice& best = plan.choices[plan.recommended];
  const std::string taken = plan.recommended == plan.all_reduce
                                ? "all-reduce is the better choice here"
                                : fmt::format("take {}, {:.2f} times as fast as all-reduce",
                                              title(best.candidate), best.speed_up);
  return fmt::format("\n{}:\n  {}\n", taken, options_of(best));
}

std::string verification(const std::vector<Verified>& rows) {
  std::string text = fmt::format("\n  {:<24} {:>9} {:>8} {:>9} {:>8} {:>10} {:>8}\n", "ms/step",
                                 "measured", "± 95 %", "model", "error", "simulated", "error");
  for (const Verified& row : rows) {
    text += fmt::format("  {:<24} {:>9.2f} {:>8.2f} {:>9.2f} {:>6.1f} % {:>10.2f} {:>6.1f} %\n",
                        row.name, 1e3 * row.measured, 1e3 * row.interval, 1e3 * row.model,
                        100 * row.model_error(), 1e3 * row.simulated, 100 * row.simulation_error());
  }
  return text;
}

ordered_json json_of(const model::Choice& choice) {
  const model::Prediction& p = choice.prediction;
  const model::Pattern& pattern = choice.candidate.pattern;
  ordered_json json = {{"name", title(choice.candidate)},
                       {"algorithm", choice.candidate.algorithm->name},
                       {"schedule", pattern.schedule}};
  const auto or_null = [](const auto& value) {
    return value ? ordered_json(*value) : ordered_json();
  };
  json["group_size"] = or_null(pattern.group_size);
  json["sync_period"] = or_null(choice.candidate.sync_period);
  json["advisable"] = choice.candidate.advisable;
  json["buckets"] = choice.buckets;
  json["bucket_bytes"] = choice.bucket_bytes;
  json["step_seconds"] = p.step;
  json["step_seconds_interval"] =
      p.interval ? ordered_json({p.step - *p.interval, p.step + *p.interval}) : ordered_json();
  json["speed_up"] = choice.speed_up;
  json["waiting"] = {
      {"straggler", p.waiting.straggler}, {"exchange", p.waiting.exchange}, {"update", p.update}};
  json["overlap"] = p.overlap;
  json["stale_fraction"] = p.stale;
  ordered_json& ages = json["age_histogram"] = ordered_json::object();
  for (std::size_t age = 0; age < p.ages.size(); ++age) {
    if (p.ages[age] > 0) {
      ages[std::to_string(age)] = p.ages[age];
    }
  }
  json["bytes_per_node"] = choice.bytes_per_node;
  return json;
}

}  // namespace

std::string text_of(const PlanReport& report) {
  const model::Plan& plan = report.plan;
  std::string text = fmt::format(
      "{} workers, {} per node; {} ({} parameters, {}); a step computes {:.2f} ms, coefficient of "
      "variation {:.3f}{}\n\n{}",
      plan.workers, plan.per_node, report.profile.model, report.profile.parameters,
      bytes_text(static_cast<double>(report.profile.bytes)), 1e3 * plan.compute, plan.variation,
      report.question.is_what_if(report.profile) ? "; exchanges from the speed of links" : "",
      table(plan));
  text += advice(plan);
  for (const std::string& reason : plan.why) {
    text += fmt::format("- {}\n", reason);
  }
  if (!report.verified.empty()) {
    text += verification(report.verified);
  }
  return text;
}

ordered_json json_of(const PlanReport& report) {
  const model::Plan& plan = report.plan;
  ordered_json json = {{"workers", plan.workers},
                       {"per_node", plan.per_node},
                       {"model", report.profile.model},
                       {"parameters", report.profile.parameters},
                       {"bytes", report.profile.bytes},
                       {"compute_seconds", plan.compute},
                       {"compute_variation", plan.variation},
                       {"what_if", report.question.is_what_if(report.profile)},
                       {"recommended", title(plan.choices[plan.recommended].candidate)},
                       {"options", options_of(plan.choices[plan.recommended])},
                       {"why", plan.why},
                       {"choices", ordered_json::array()}};
  for (const model::Choice& choice : plan.choices) {
    json["choices"].push_back(json_of(choice));
  }
  if (!report.verified.empty()) {
    ordered_json& rows = json["verified"] = ordered_json::array();
    for (const Verified& row : report.verified) {
      rows.push_back({{"name", row.name},
                      {"measured_seconds", row.measured},
                      {"measured_interval", row.interval},
                      {"model_seconds", row.model},
                      {"model_error", row.model_error()},
                      {"simulated_seconds", row.simulated},
                      {"simulation_error", row.simulation_error()}});
    }
  }
  return json;
}

}  // namespace starling::tool
