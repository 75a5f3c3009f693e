#include "starling/tool/training_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "starling/base/units.h"
#include "starling/topology/algorithm.h"

namespace starling::tool {
namespace {

using nlohmann::ordered_json;

std::string time_text(double s) {
  return s >= 1 || s == 0 ? fmt::format("{:.3f} s", s)
         : s >= 1e-3      ? fmt::format("{:.3f} ms", s * 1e3)
                          : fmt::format("{:.2f} us", s * 1e6);
}

std::string ages_text(const sim::TrainingResult& result) {
  constexpr std::size_t kShown = 8;
  std::string text;
  std::size_t shown = 0;
  std::uint64_t rest = result.nothing;
  for (const auto& [age, count] : result.ages) {
    if (shown++ < kShown) {
      text += fmt::format("{}{}: {:.2f} %", text.empty() ? "" : ", ", age,
                          100 * static_cast<double>(count) / static_cast<double>(result.rounds));
    } else {
      rest += count;
    }
  }
  if (rest > 0) {
    text += fmt::format(", older or nothing new: {:.2f} %",
                        100 * static_cast<double>(rest) / static_cast<double>(result.rounds));
  }
  return text;
}

}  // namespace

std::optional<Interval> step_interval(const sim::TrainingResult& result) {
  std::optional<Interval> around = interval_of(result.batches);
  if (around) {
    const double half = (around->high - around->low) / 2;
    around = {result.step_seconds, result.step_seconds - half, result.step_seconds + half};
  }
  return around;
}

std::string training_text(const sim::TrainingOptions& options, const sim::TrainingResult& result,
                          std::optional<double> wall) {
  const sim::PortOptions& ports = options.network.ports;
  const std::optional<Interval> interval = step_interval(result);
  std::string text = fmt::format(
      "{} among {} workers, {} per node; {} steps; a model of {} in {} bucket{}; {}/s and {} "
      "between nodes\n",
      topology::find_algorithm(options.plan.algorithm).name, ports.workers, ports.per_node,
      *options.plan.steps, to_string(options.bytes), options.buckets,
      options.buckets == 1 ? "" : "s", bytes_text(ports.bandwidth), time_text(ports.latency));
  text += fmt::format(
      "step             {:>12}   {}, {:.4g} steps per second\n", time_text(result.step_seconds),
      interval ? fmt::format("95 % {} to {}", time_text(interval->low), time_text(interval->high))
               : "too few for an interval",
      1 / result.step_seconds);
  text += fmt::format("own steps        {:>12}   mean over workers\n",
                      time_text(result.own_step_seconds));
  const auto row = [&](const char* name, double time) {
    text += fmt::format("{:<16} {:>12}   {:>5.1f} % of the own step\n", name, time_text(time),
                        100 * time / std::max(result.own_step_seconds, 1e-300));
  };
  row("  computing", result.shares.compute);
  if (result.shares.delay > 0) {
    row("  delayed", result.shares.delay);
  }
  row("  for stragglers", result.shares.straggler);
  row("  for exchanges", result.shares.exchange);
  row("  updating", result.shares.update);
  text += fmt::format("stale            {:>10.2f} %   of contributions; ages {}\n",
                      100 * result.stale_fraction, ages_text(result));
  text +=
      fmt::format("busiest card     {:>12}   per step\n", bytes_text(result.card_bytes_per_step));
  text += fmt::format("messages         {:>12}   events {}, trace {:016x}\n", result.messages,
                      result.events, result.trace);
  if (wall) {
    text += fmt::format("took {:.3f} s, {:.2f} million events per second\n", *wall,
                        static_cast<double>(result.events) / *wall / 1e6);
  }
  return text;
}

ordered_json training_json(const ordered_json& echo, const sim::TrainingResult& result,
                           std::optional<double> wall) {
  const std::optional<Interval> interval = step_interval(result);
  ordered_json ages = ordered_json::object();
  for (const auto& [age, count] : result.ages) {
    ages[std::to_string(age)] = count;
  }
  ordered_json json = {{"options", echo},
                       {"seconds", result.seconds},
                       {"step_seconds", result.step_seconds},
                       {"step_seconds_interval",
                        interval ? ordered_json({interval->low, interval->high}) : ordered_json()},
                       {"batches", result.batches.size()},
                       {"steps_per_second", 1 / result.step_seconds},
                       {"own_step_seconds", result.own_step_seconds},
                       {"computing", result.shares.compute},
                       {"delayed", result.shares.delay},
                       {"waiting",
                        {{"straggler", result.shares.straggler},
                         {"exchange", result.shares.exchange},
                         {"update", result.shares.update}}},
                       {"stale_fraction", result.stale_fraction},
                       {"age_histogram", ages},
                       {"nothing_new", result.nothing},
                       {"rounds", result.rounds},
                       {"syncs", result.syncs},
                       {"card_bytes_per_step", result.card_bytes_per_step},
                       {"messages", result.messages},
                       {"events", result.events},
                       {"trace", fmt::format("{:016x}", result.trace)}};
  if (wall) {
    json["wall_seconds"] = *wall;
    json["events_per_second"] = static_cast<double>(result.events) / *wall;
  }
  return json;
}

}  // namespace starling::tool
