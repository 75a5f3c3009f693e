#include "starling/tool/compare_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/job.h"
#include "starling/tool/comparison.h"
#include "starling/tool/comparison_report.h"
#include "starling/tool/comparison_table.h"
#include "starling/tool/progress_line.h"
#include "starling/tool/quality_plot.h"
#include "starling/tool/run_store.h"
#include "starling/tool/suggest.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;

struct Request {
  std::string folder;
  std::int64_t seeds = 5;
  std::int64_t first_seed = 0;
  std::string baseline;  // empty: the first
  std::vector<std::string> runs;
  double margin = 0.5;
  std::string budget = "iterations";
  std::optional<double> seconds;
  std::optional<double> target_loss;
  std::string plot;  // empty: in the folder
  bool json = false;
};

constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+";

// Words that are ours to say.
void require_free(const std::string& where, const Words& words) {
  for (const std::string& word : words) {
    const std::string option = word.substr(0, word.find('='));
    for (const char* own : {"--seed", "--out", "--json", "--check"}) {
      require(option != own, "{}: {} is said by `starling compare` itself", where, own);
    }
    require(option != "--no-evaluation", "{}: without evaluation there is nothing to compare",
            where);
    require(option != "--resume", "{}: --resume: runs that are compared begin at the beginning",
            where);
    require(option != "--help" && option != "-h", "{}: for help see `starling train images --help`",
            where);
  }
}

// A flat model computes nothing: it has no accuracy.
void require_evaluation(const std::string& where, Words words) {
  const std::string model = take(words, "--model").value_or("");
  require(!model.starts_with("flat:"),
          "{}: --model {} cannot be evaluated: there is nothing to compare", where, model);
}

Configuration parse_run(const std::string& text, const Words& common) {
  const std::size_t colon = text.find(':');
  require(colon != std::string::npos, "--run '{}': NAME: WORDS is expected", text);
  const Words name = split_words(text.substr(0, colon));
  // It names a folder.
  require(name.size() == 1 && name[0].find_first_not_of(kLetters) == std::string::npos &&
              name[0].front() != '.' && name[0].front() != '-',
          "--run '{}': a name is of letters, digits, '-', '_', '.' and '+'", text);
  Configuration configuration{.name = name[0], .own = split_words(text.substr(colon + 1))};
  require_free("--run " + name[0], configuration.own);
  configuration.words = with_own(common, configuration.own);
  require_evaluation("--run " + name[0], configuration.words);
  return configuration;
}

std::vector<Configuration> parse_runs(const Request& request, const Words& common) {
  require(!request.runs.empty(),
          "nothing to compare: --run 'NAME: WORDS' is missing, once for each configuration");
  std::vector<Configuration> configurations;
  for (const std::string& text : request.runs) {
    Configuration next = parse_run(text, common);
    for (const Configuration& other : configurations) {
      require(other.name != next.name, "--run: there are two of the name '{}'", next.name);
    }
    configurations.push_back(std::move(next));
  }
  return configurations;
}

std::string find_baseline(const Request& request,
                          const std::vector<Configuration>& configurations) {
  if (request.baseline.empty()) {
    return configurations.front().name;
  }
  std::vector<std::string> names;
  for (const Configuration& each : configurations) {
    names.push_back(each.name);
  }
  require(std::find(names.begin(), names.end(), request.baseline) != names.end(), "--baseline: {}",
          unknown("run", request.baseline, names));
  return request.baseline;
}

Comparison parse(const Request& request, const Words& common) {
  require(!common.empty(),
          "the words of all runs are missing, as after `starling train`: … -- images -n 4 …");
  require_free("the words of all runs", common);
  const std::vector<std::string> budgets = {"iterations", "time", "both"};
  require(std::find(budgets.begin(), budgets.end(), request.budget) != budgets.end(),
          "--budget: {}", unknown("word", request.budget, budgets));
  for (const double number :
       {request.margin, request.seconds.value_or(1), request.target_loss.value_or(0)}) {
    require(std::isfinite(number), "--margin, --seconds and --target-loss are numbers, not {}",
            number);
  }
  const fs::path place = fs::path(request.plot).parent_path();
  require(place.empty() || fs::is_directory(place), "--plot {}: there is no folder {}",
          request.plot, place.string());
  Comparison comparison;
  comparison.folder = fs::path(request.folder).lexically_normal();
  comparison.configurations = parse_runs(request, common);
  comparison.baseline = find_baseline(request, comparison.configurations);
  for (std::int64_t i = 0; i < request.seeds; ++i) {
    comparison.seeds.push_back(static_cast<std::uint64_t>(request.first_seed + i));
  }
  comparison.has_iterations = request.budget != "time";
  comparison.has_time = request.budget != "iterations";
  require(!request.seconds || comparison.has_time, "--seconds is of --budget time or both");
  comparison.seconds = request.seconds;
  return comparison;
}

std::string time_text(double seconds) {
  if (seconds < 100) {
    return fmt::format("{:.0f} s", seconds);
  }
  return seconds < 2 * 3600 ? fmt::format("{:.0f} min", seconds / 60)
                            : fmt::format("{:.1f} h", seconds / 3600);
}

// Ends of runs are lines that stay, for it takes long; the rest is for whoever looks.
void show(ProgressLine& line, const ComparisonProgress& progress) {
  std::string text = fmt::format("run {} of {}: {}", progress.run, progress.runs, progress.what);
  for (const std::string& more : {progress.step, progress.ended}) {
    text += more.empty() ? "" : ": " + more;
  }
  if (progress.left && progress.run < progress.runs) {
    text += fmt::format(", about {} left", time_text(*progress.left));
  }
  if (progress.ended.empty()) {
    line.show(text);
  } else {
    line.show("");
    fmt::print(stderr, "{}\n", text);
  }
}

std::vector<PlotPanel> panels_of(const std::string& budget, const std::vector<Outcomes>& outcomes) {
  PlotPanel steps{.title = budget, .x_title = "iterations", .y_title = "test accuracy, %"};
  PlotPanel time{.title = budget, .x_title = "seconds of training", .y_title = "test accuracy, %"};
  for (const Outcomes& each : outcomes) {
    PlotCurve by_step{.name = each.name};
    PlotCurve by_time{.name = each.name};
    for (const MeasuredRun& run : each.runs) {
      by_step.seeds.emplace_back();
      by_time.seeds.emplace_back();
      for (const MeasuredRun::Evaluation& evaluation : run.evaluations) {
        by_step.seeds.back().emplace_back(evaluation.step, 100 * evaluation.accuracy);
        by_time.seeds.back().emplace_back(evaluation.seconds, 100 * evaluation.accuracy);
      }
    }
    steps.curves.push_back(std::move(by_step));
    time.curves.push_back(std::move(by_time));
  }
  return {std::move(steps), std::move(time)};
}

void write_plot(const fs::path& file, const ComparisonResult& result, const Words& common) {
  std::vector<std::vector<PlotPanel>> lines;
  if (!result.iterations.empty()) {
    lines.push_back(panels_of("fixed iterations", result.iterations));
  }
  if (!result.time.empty()) {
    lines.push_back(panels_of("fixed time", result.time));
  }
  write_text(file, draw_plot(join_words(common), lines));
}

bool has_failures(const ComparisonResult& result) {
  for (const auto* outcomes : {&result.iterations, &result.time}) {
    for (const Outcomes& each : *outcomes) {
      if (!each.failures.empty()) {
        return true;
      }
    }
  }
  return false;
}

void print(const Request& request, const Comparison& comparison, const ComparisonResult& result,
           const Words& common) {
  const ComparisonFacts facts{.words = common,
                              .seeds = comparison.seeds,
                              .yardstick = {.baseline = comparison.baseline,
                                            .margin = request.margin / 100,
                                            .target_loss = request.target_loss},
                              .seconds = comparison.seconds};
  const std::vector<Row> iterations = rows_of(result.iterations, facts.yardstick);
  const std::vector<Row> time = rows_of(result.time, facts.yardstick);
  const std::string json = json_of_comparison(iterations, time, facts).dump(2) + "\n";
  write_text(comparison.folder / "compare.json", json);
  const fs::path plot =
      request.plot.empty() ? comparison.folder / "compare.svg" : fs::path(request.plot);
  write_plot(plot, result, common);
  if (request.json) {
    fmt::print("{}", json);
    return;
  }
  if (!iterations.empty()) {
    fmt::print("{}\n", text_of_comparison("fixed iterations", iterations, facts));
  }
  if (!time.empty()) {
    fmt::print("{}\n", text_of_comparison(
                           comparison.seconds
                               ? fmt::format("fixed time, {:g} s", *comparison.seconds)
                               : fmt::format("fixed time, as long as {} took", comparison.baseline),
                           time, facts));
  }
  fmt::print("{}\n{}\n", legend_of_comparison(iterations, time, facts), plot.string());
}

void run(const Request& request, const Words& common) {
  require(comm::find_job(comm::process_environment()).launcher == comm::Launcher::None,
          "starling compare starts its workers itself: it cannot be a worker of a job");
  const Comparison comparison = parse(request, common);
  const std::vector<TrainerPlan> plans = check_configurations(comparison);
  ComparisonResult result;
  {
    ProgressLine line;
    result = hold_comparison(comparison, plans, isatty(STDERR_FILENO) == 1,
                             [&](const ComparisonProgress& progress) { show(line, progress); });
  }
  print(request, comparison, result, common);
  if (has_failures(result)) {
    throw CLI::RuntimeError(1);
  }
}

void run_or_stop(const Request& request, const Words& common) {
  try {
    run(request, common);
  } catch (const Interrupted& e) {
    fmt::print(stderr, "starling: {}\n", e.what());
    throw CLI::RuntimeError(128 + e.signal());
  }
}

constexpr double kMost = 1e9;

void add_options(CLI::App& command, Request& request) {
  command
      .add_option("--out", request.folder,
                  "Folder of the comparison; one that was interrupted goes on there")
      ->required();
  command
      .add_option("--run", request.runs,
                  "'NAME: WORDS', once for each configuration: options of `starling train images` "
                  "that go before those of all runs")
      ->allow_extra_args(false);
  command.add_option("--baseline", request.baseline,
                     "Name of the configuration to compare with; default: the first");
  command.add_option("--seeds", request.seeds, "How many; with one there is no verdict")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--first-seed", request.first_seed, "They count up from it")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  command
      .add_option("--margin", request.margin,
                  "Points of test accuracy: less does not matter, so it counts as equal")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command
      .add_option("--budget", request.budget,
                  "What all have the same of: iterations (the words as given), time (each runs as "
                  "many --steps as fit, by its own measured step, so that its learning-rate "
                  "schedule ends in time), or both, one after the other")
      ->capture_default_str();
  command
      .add_option("--seconds", request.seconds,
                  "The budget of time; default: what the baseline takes, per seed")
      ->check(CLI::Range(1e-3, kMost));
  command
      .add_option("--target-loss", request.target_loss,
                  "Test loss whose time is taken; default: what the baseline has in the end")
      ->check(CLI::Range(0.0, kMost));
  command.add_option("--plot", request.plot, "Picture (SVG); default: compare.svg in the folder");
  command.add_flag("--json", request.json, "Print JSON; it is in compare.json of the folder too");
}

}  // namespace

void add_compare_command(CLI::App& app) {
  // Lives as long as the callback that reads it.
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand(
      "compare", "Train in several ways, paired by seeds, and say which is better");
  command->footer(
      "starling compare --out FOLDER --run 'NAME: WORDS' --run … [OPTIONS] -- images [WORDS]...\n"
      "Started again with the same words, it runs only what is missing or failed.\n"
      "Exit codes: 0 done, 1 some run failed, 2 wrong command line or input, 128 + S if\n"
      "interrupted by signal S.");
  command->prefix_command();
  add_options(*command, *request);
  command->callback([command, request] {
    const Words words = command->remaining();
    if (!words.empty() && words.front().starts_with('-')) {
      throw CLI::ExtrasError({words.front()});  // no option of ours
    }
    run_or_stop(*request, words);
  });
}

}  // namespace starling::tool
