#include "starling/tool/comparison_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace starling::tool {
namespace {

using nlohmann::ordered_json;

// "89.1 [88.9, 89.3]"; `plus`: signs of positive numbers too.
std::string text_of(const std::optional<Estimate>& estimate, double factor, int digits,
                    bool plus = false) {
  if (!estimate) {
    return "-";
  }
  const auto number = [&](double value) {
    return plus ? fmt::format("{:+.{}f}", factor * value, digits)
                : fmt::format("{:.{}f}", factor * value, digits);
  };
  if (!estimate->interval) {
    return number(estimate->mean);
  }
  return fmt::format("{} [{}, {}]", number(estimate->mean), number(estimate->interval->low),
                     number(estimate->interval->high));
}

// "43.1 ± 0.8": half an interval is enough where it is as long on both sides.
std::string mean_text(const std::optional<Estimate>& estimate, double factor, int digits) {
  if (!estimate) {
    return "-";
  }
  const std::string mean = fmt::format("{:.{}f}", factor * estimate->mean, digits);
  return estimate->interval
             ? fmt::format("{} ± {:.{}f}", mean,
                           factor * (estimate->interval->high - estimate->mean), digits)
             : mean;
}

std::string no_verdict(const Row& row, std::size_t seeds) {
  if (seeds == 1) {
    return "no verdict (one seed)";
  }
  return fmt::format("no verdict ({} pair{})", row.pairs, row.pairs == 1 ? "" : "s");
}

// Behind what is said of some of the seeds only.
std::string pairs_text(const Row& row, std::size_t seeds) {
  return row.pairs < seeds ? fmt::format(" ({} of {} pairs)", row.pairs, seeds) : "";
}

std::string verdict_text(const Row& row, std::size_t seeds) {
  if (row.is_baseline) {
    return "";
  }
  if (row.verdict == Verdict::None) {
    return no_verdict(row, seeds);
  }
  return fmt::format("{}{}{}", name_of(row.verdict), pairs_text(row, seeds),
                     row.off_budget > 0 ? " (off budget)" : "");
}

// How many seconds, or how many runs did not reach it.
std::string loss_time_text(const Row& row) {
  if (row.time_to_loss) {
    return mean_text(row.time_to_loss, 1, 1);
  }
  return row.targets == 0
             ? "-"
             : fmt::format("not reached ({} of {})", row.targets - row.reached, row.targets);
}

std::string pace_text(const Row& row, std::size_t seeds) {
  if (row.is_baseline) {
    return "baseline";
  }
  if (!row.time_to_loss_ratio) {
    return "-";
  }
  const std::string ratio = text_of(row.time_to_loss_ratio, 1, 2);
  return row.pace == Pace::None
             ? ratio
             : fmt::format("{} {}{}", ratio, name_of(row.pace), pairs_text(row, seeds));
}

using Cells = std::vector<std::string>;

std::size_t width_of(const std::string& text) {  // letters, not bytes
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// The first column to the left, `left` of them; the others to the right.
std::string table_of(const std::vector<Cells>& lines, std::size_t left) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(line[i]));
    }
  }
  std::string text;
  for (const Cells& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string space(widths[i] - width_of(line[i]), ' ');
      row += (i == 0 ? "" : "  ") + (i < left ? line[i] + space : space + line[i]);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string quality_table(const std::vector<Row>& rows, std::size_t seeds) {
  std::vector<Cells> lines = {{"", "runs", "test %", "difference, points", "verdict", "test loss"}};
  for (const Row& row : rows) {
    const std::size_t done = row.outcomes->runs.size();
    const std::size_t failed = row.outcomes->failures.size();
    lines.push_back(
        {row.outcomes->name,
         failed == 0 ? fmt::format("{}", done) : fmt::format("{}, {} failed", done, failed),
         text_of(row.accuracy, 100, 2),
         row.is_baseline ? "baseline" : text_of(row.difference, 100, 2, true),
         verdict_text(row, seeds), text_of(row.loss, 1, 4)});
  }
  return table_of(lines, 6);
}

std::string speed_table(const std::vector<Row>& rows, std::size_t seeds) {
  std::vector<Cells> lines = {{"", "time to loss, s", "sooner, x", "speed, x", "samples/s",
                               "ms/step", "steps", "time, s", "waiting, %", "stale, %",
                               "consensus"}};
  for (const Row& row : rows) {
    lines.push_back({row.outcomes->name, loss_time_text(row), pace_text(row, seeds),
                     row.is_baseline ? "baseline" : text_of(row.speed_ratio, 1, 2),
                     mean_text(row.samples_per_second, 1, 0), mean_text(row.step_seconds, 1e3, 2),
                     row.steps ? fmt::format("{:.0f}", row.steps->mean) : "-",
                     mean_text(row.seconds, 1, 1), mean_text(row.waiting, 100, 1),
                     mean_text(row.stale_fraction, 100, 1),
                     row.consensus ? fmt::format("{:.2e}", row.consensus->mean) : "-"});
  }
  return table_of(lines, 4);
}

std::string remarks(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    for (const Outcomes::Failure& failure : row.outcomes->failures) {
      text +=
          fmt::format("{}, seed {} failed: {}\n", row.outcomes->name, failure.seed, failure.why);
    }
    for (const MeasuredRun& run : row.outcomes->runs) {
      if (is_off_budget(run)) {
        text += fmt::format(
            "{}, seed {} took {:.1f} s, not the {:.1f} s of its budget: the machine "
            "was not as fast as when its step was measured\n",
            row.outcomes->name, run.seed, run.seconds, *run.budget);
      }
      if (run.lost > 0) {
        text += fmt::format("{}, seed {} went on without {} of its workers\n", row.outcomes->name,
                            run.seed, run.lost);
      }
    }
  }
  return text.empty() ? text : "\n" + text;
}

// Of runs without a curve; empty if there are none.
std::string evaluations_text(const std::vector<Row>& iterations, const std::vector<Row>& time) {
  std::size_t runs = 0;
  std::size_t single = 0;
  for (const auto* rows : {&iterations, &time}) {
    for (const Row& row : *rows) {
      for (const MeasuredRun& run : row.outcomes->runs) {
        ++runs;
        single += has_curve(run) ? 0 : 1;
      }
    }
  }
  if (single == 0) {
    return "";
  }
  return fmt::format(
      "{}runs had one evaluation each: no time to a loss, no curves; add --eval-every\n",
      single == runs ? "" : "some ");
}

ordered_json json_of(const std::optional<Estimate>& estimate) {
  if (!estimate) {
    return {};
  }
  ordered_json value = {{"mean", estimate->mean}, {"low", nullptr}, {"high", nullptr}};
  if (estimate->interval) {
    value["low"] = estimate->interval->low;
    value["high"] = estimate->interval->high;
  }
  return value;
}

ordered_json json_of(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json json_of_runs(const Row& row) {
  ordered_json runs = ordered_json::array();
  for (std::size_t i = 0; i < row.outcomes->runs.size(); ++i) {
    const MeasuredRun& run = row.outcomes->runs[i];
    ordered_json& value = runs.emplace_back();
    value["seed"] = run.seed;
    value["steps"] = run.steps;
    value["accuracy"] = run.accuracy;
    value["loss"] = json_of(run.loss);
    value["seconds"] = run.seconds;
    value["samples_per_second"] = run.samples_per_second;
    value["step_seconds"] = run.step_seconds;
    value["waiting"] = run.waiting;
    value["stale_fraction"] = run.stale_fraction;
    value["consensus_relative"] = json_of(run.consensus);
    value["time_to_loss"] = json_of(row.times_to_loss[i]);
    value["lost"] = run.lost;
    value["budget_seconds"] = json_of(run.budget);
  }
  return runs;
}

ordered_json json_of(const Row& row) {
  ordered_json failed = ordered_json::array();
  for (const Outcomes::Failure& failure : row.outcomes->failures) {
    failed.push_back({{"seed", failure.seed}, {"why", failure.why}});
  }
  const auto of_others = [&](std::string_view name) {
    return row.is_baseline ? ordered_json() : ordered_json(name);
  };
  ordered_json value;
  value["name"] = row.outcomes->name;
  value["words"] = join_words(row.outcomes->words);
  value["runs"] = json_of_runs(row);
  value["failed"] = std::move(failed);
  value["pairs"] = row.pairs;
  value["accuracy"] = json_of(row.accuracy);
  value["difference"] = json_of(row.difference);
  value["verdict"] = of_others(name_of(row.verdict));
  value["off_budget"] = row.off_budget;
  value["loss"] = json_of(row.loss);
  value["seconds"] = json_of(row.seconds);
  value["samples_per_second"] = json_of(row.samples_per_second);
  value["speed_ratio"] = json_of(row.speed_ratio);
  value["step_seconds"] = json_of(row.step_seconds);
  value["waiting"] = json_of(row.waiting);
  value["stale_fraction"] = json_of(row.stale_fraction);
  value["consensus_relative"] = json_of(row.consensus);
  value["reached_loss"] = row.reached;
  value["time_to_loss"] = json_of(row.time_to_loss);
  value["time_to_loss_ratio"] = json_of(row.time_to_loss_ratio);
  value["time_to_loss_verdict"] = of_others(name_of(row.pace));
  return value;
}

ordered_json json_of(const std::vector<Row>& rows) {
  ordered_json values = ordered_json::array();
  for (const Row& row : rows) {
    values.push_back(json_of(row));
  }
  return values;
}

}  // namespace

std::string text_of_comparison(const std::string& title, const std::vector<Row>& rows,
                               const ComparisonFacts& facts) {
  const std::size_t seeds = facts.seeds.size();
  return fmt::format("{}: {} seed{} ({}), against {}{}\n\n{}\n{}{}", title, seeds,
                     seeds == 1 ? "" : "s",
                     seeds == 1 ? fmt::format("{}", facts.seeds.front())
                                : fmt::format("{} to {}", facts.seeds.front(), facts.seeds.back()),
                     facts.yardstick.baseline, seeds == 1 ? "" : "; means with intervals of 95 %",
                     quality_table(rows, seeds), speed_table(rows, seeds), remarks(rows));
}

std::string legend_of_comparison(const std::vector<Row>& iterations, const std::vector<Row>& time,
                                 const ComparisonFacts& facts) {
  const Yardstick& yardstick = facts.yardstick;
  const std::string target =
      yardstick.target_loss
          ? fmt::format("a test loss of {:g}", *yardstick.target_loss)
          : fmt::format("the test loss that {} has in the end", yardstick.baseline);
  return fmt::format(
      "verdict: equal if the interval lies within ±{:g} points, better or worse if on one side of "
      "0. Pairs have the same seed.\n"
      "time to loss: until {}. sooner: times, against {}. waiting: of a worker's time, for "
      "others.\n"
      "stale: contributions that were not of their step. consensus: distance of the models from "
      "their average, relative.\n{}",
      100 * yardstick.margin, target, yardstick.baseline, evaluations_text(iterations, time));
}

ordered_json json_of_comparison(const std::vector<Row>& iterations, const std::vector<Row>& time,
                                const ComparisonFacts& facts) {
  return {{"baseline", facts.yardstick.baseline},
          {"words", join_words(facts.words)},
          {"seeds", facts.seeds},
          {"margin", facts.yardstick.margin},
          {"target_loss", json_of(facts.yardstick.target_loss)},
          {"configurations", json_of(iterations)},
          {"time_budget_seconds", json_of(facts.seconds)},
          {"time_budget", json_of(time)}};
}

}  // namespace starling::tool
