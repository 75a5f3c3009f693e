#include "starling/tool/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "starling/base/time.h"
#include "starling/tool/programs.h"
#include "starling/tool/run_store.h"

namespace starling::tool {
namespace {

namespace fs = std::filesystem;
using launch::Stream;
using nlohmann::json;

enum class Kind : std::uint8_t { Iterations, Time, Probe };

// Steps of a probe: enough to know what one takes.
constexpr std::uint64_t kProbeSteps = 60;
constexpr std::uint64_t kProbeWarmUp = 10;

// Nothing of a run that has ended is left.
constexpr double kEnded = std::numeric_limits<double>::infinity();

constexpr std::string_view kComplaint = "starling: ";

Words command_of(const Words& words) {
  Words command = {find_trainer()};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

// "step 20/100" of a bar; empty if there is none in it.
std::string step_in(std::string_view bar) {
  const std::size_t begin = bar.find("step ");
  if (begin == std::string_view::npos) {
    return "";
  }
  return std::string(bar.substr(begin, bar.find("  ", begin) - begin));
}

// What was written to the log of a run, and what of it says why it failed.
class Log {
 public:
  explicit Log(const fs::path& file) : file_(file, std::ios::binary) {}
  void add(std::string_view line) {
    file_ << line << '\n' << std::flush;
    if (complaint_.empty() && line.starts_with(kComplaint)) {
      complaint_ = line.substr(kComplaint.size());
    }
  }
  const std::string& complaint() const { return complaint_; }

 private:
  std::ofstream file_;
  std::string complaint_;
};

// How long a run of a configuration takes, as far as is known.
class Pacing {
 public:
  void add(const std::string& what, double seconds) {
    for (auto* sum : {&all_, &by_name_[what]}) {
      sum->first += seconds;
      sum->second += 1;
    }
  }
  std::optional<double> expect(const std::string& what) const {
    const auto found = by_name_.find(what);
    const auto& [seconds, count] = found == by_name_.end() ? all_ : found->second;
    return count > 0 ? std::optional(seconds / count) : std::nullopt;
  }

 private:
  std::pair<double, double> all_{0, 0};
  std::map<std::string, std::pair<double, double>> by_name_;
};

class Contest {
 public:
  Contest(const Comparison& comparison, const std::vector<TrainerPlan>& plans, bool has_bar,
          const std::function<void(const ComparisonProgress&)>& progress)
      : comparison_(comparison), plans_(plans), has_bar_(has_bar), progress_(progress) {}

  ComparisonResult hold();

 private:
  struct Run {
    std::size_t index = 0;  // of the configuration
    std::uint64_t seed = 0;
    Kind kind = Kind::Iterations;
  };

  const Configuration& configuration(const Run& run) const {
    return comparison_.configurations[run.index];
  }
  bool is_baseline(std::size_t index) const {
    return comparison_.configurations[index].name == comparison_.baseline;
  }
  // Its run under the one budget is the one under the other.
  bool counts_twice(std::size_t index) const {
    return comparison_.has_time && !comparison_.seconds && is_baseline(index);
  }
  bool runs_iterations(std::size_t index) const {
    return comparison_.has_iterations || counts_twice(index);
  }

  std::vector<Run> planned() const;
  fs::path folder_of(const Run& run) const;
  StoredRun stored(const Run& run, Words words) const;
  StoredRun stored_iterations(std::size_t index, std::uint64_t seed) const;
  Words time_words(std::size_t index, std::uint64_t steps) const;
  std::string text_of(const Run& run) const;

  void look_at_folder();
  void hold_iterations(std::size_t round);
  void hold_time(std::size_t round);
  // The summary, from the folder or from running it; none: it failed, and why is noted.
  std::optional<json> result_of(const Run& run, const StoredRun& store);
  std::optional<json> perform(const Run& run, const StoredRun& store);
  // Seconds of a step, by the run under the other budget or a probe.
  std::optional<double> step_seconds(std::size_t index, std::uint64_t seed);
  void note(std::vector<Outcomes>& outcomes, const Run& run, const std::optional<json>& summary,
            const std::string& failure) const;
  void tell(const Run& run, std::string step, std::string ended, double elapsed);
  std::optional<double> seconds_left(const Run& run, double elapsed) const;

  const Comparison& comparison_;
  const std::vector<TrainerPlan>& plans_;
  const bool has_bar_;
  const std::function<void(const ComparisonProgress&)>& progress_;
  ComparisonResult result_;
  Pacing pacing_;
  std::vector<Run> left_;  // without probes
  std::size_t runs_ = 0;
  std::string failure_;  // of the last run
};

std::vector<Contest::Run> Contest::planned() const {
  std::vector<Run> runs;
  for (std::size_t round = 0; round < comparison_.seeds.size(); ++round) {
    const std::uint64_t seed = comparison_.seeds[round];
    const std::size_t count = comparison_.configurations.size();
    for (const Kind kind : {Kind::Iterations, Kind::Time}) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t index = round % 2 == 0 ? i : count - 1 - i;
        if (kind == Kind::Iterations ? runs_iterations(index)
                                     : comparison_.has_time && !counts_twice(index)) {
          runs.push_back({index, seed, kind});
        }
      }
    }
  }
  return runs;
}

fs::path Contest::folder_of(const Run& run) const {
  constexpr std::string_view kPrefixes[] = {"", "time-", "probe-"};
  return comparison_.folder / configuration(run).name /
         fmt::format("{}seed-{}", kPrefixes[static_cast<std::size_t>(run.kind)], run.seed);
}

StoredRun Contest::stored(const Run& run, Words words) const {
  words.insert(words.begin() + 1, {"--seed", fmt::format("{}", run.seed)});
  return {.folder = folder_of(run), .words = std::move(words)};
}

StoredRun Contest::stored_iterations(std::size_t index, std::uint64_t seed) const {
  return stored({index, seed, Kind::Iterations}, comparison_.configurations[index].words);
}

Words Contest::time_words(std::size_t index, std::uint64_t steps) const {
  return with_own(comparison_.configurations[index].words, {"--steps", fmt::format("{}", steps)});
}

std::string Contest::text_of(const Run& run) const {
  constexpr std::string_view kWhat[] = {"", ", fixed time", ", probe"};
  return fmt::format("{}, seed {}{}", configuration(run).name, run.seed,
                     kWhat[static_cast<std::size_t>(run.kind)]);
}

// Other words, which are an error, and how long runs took: before anything is run.
void Contest::look_at_folder() {
  for (const Run& run : left_) {
    if (run.kind == Kind::Iterations) {
      const StoredRun store = stored_iterations(run.index, run.seed);
      if (summary_of(store)) {
        pacing_.add(configuration(run).name, noted_seconds(store));
      }
    }
  }
}

std::optional<double> Contest::seconds_left(const Run& run, double elapsed) const {
  const std::optional<double> now = pacing_.expect(configuration(run).name);
  if (!now) {
    return std::nullopt;
  }
  double sum = run.kind == Kind::Probe ? 0 : std::max(0.0, *now - elapsed);
  for (const Run& other : left_) {
    const bool is_done = fs::exists(folder_of(other) / "summary.json");
    sum += is_done ? 0 : *pacing_.expect(configuration(other).name);
  }
  return sum;
}

void Contest::tell(const Run& run, std::string step, std::string ended, double elapsed) {
  progress_({.run = runs_ - left_.size() + (run.kind == Kind::Probe ? 1 : 0),
             .runs = runs_,
             .what = text_of(run),
             .step = std::move(step),
             .ended = std::move(ended),
             .left = seconds_left(run, elapsed)});
}

std::optional<json> Contest::perform(const Run& run, const StoredRun& store) {
  begin_run(store);
  Words command = command_of(store.words);
  command.insert(command.end(), {"--out", store.folder.string()});
  Log log(store.log());
  log.add(join_words(command));
  launch::Options options = trainer_options(plans_[run.index], std::move(command), has_bar_);
  const WallTime begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return seconds(std::chrono::steady_clock::now() - begin); };
  options.on_line = [&](std::size_t, Stream, std::string_view line) {
    if (line.starts_with(kBarMark)) {
      tell(run, step_in(line.substr(kBarMark.size())), "", elapsed());
    } else {
      log.add(line);
    }
  };
  tell(run, "", "", 0);
  const launch::Result result = launch::launch(options);
  std::optional<json> summary = summary_of(store);
  if (summary) {
    end_run(store, elapsed());
    pacing_.add(configuration(run).name, elapsed());
  }
  if (result.interrupted_by) {
    throw Interrupted(*result.interrupted_by);
  }
  if (summary) {
    return summary;
  }
  const bool has_lost = !result.lost.empty();
  const std::size_t first = has_lost ? result.lost.front() : 0;
  failure_ = !log.complaint().empty()
                 ? log.complaint()
                 : fmt::format("worker {} {}", first, launch::describe(result.workers[first]));
  require(!has_lost || result.workers[first].exit_code != 2, "{}: {}", text_of(run), failure_);
  failure_ += fmt::format(" ({})", store.log().string());
  return summary;
}

std::optional<json> Contest::result_of(const Run& run, const StoredRun& store) {
  if (run.kind != Kind::Probe) {
    left_.erase(left_.begin());
  }
  failure_.clear();
  if (std::optional<json> summary = summary_of(store)) {
    return summary;
  }
  std::optional<json> summary = perform(run, store);
  if (summary && run.kind != Kind::Probe) {
    const MeasuredRun measured = measured_run(*summary);
    tell(run, "",
         fmt::format("accuracy {:.4f} after {} steps in {:.1f} s", measured.accuracy,
                     measured.steps, measured.seconds),
         kEnded);
  } else if (!summary) {
    tell(run, "", fmt::format("failed: {}", failure_), kEnded);
  }
  return summary;
}

void Contest::note(std::vector<Outcomes>& outcomes, const Run& run,
                   const std::optional<json>& summary, const std::string& failure) const {
  if (summary) {
    outcomes[run.index].runs.push_back(measured_run(*summary));
  } else {
    outcomes[run.index].failures.push_back({.seed = run.seed, .why = failure});
  }
}

std::optional<double> Contest::step_seconds(std::size_t index, std::uint64_t seed) {
  Words words = comparison_.configurations[index].words;
  take(words, "--eval-every");
  // A schedule in samples may be longer than a probe, and a rate that needs one would diverge.
  words = with_own(words, {"--steps", fmt::format("{}", kProbeSteps + kProbeWarmUp),
                           "--warm-up-steps", fmt::format("{}", kProbeWarmUp), "--no-evaluation",
                           "--lr-schedule", "constant", "--lr", "0"});
  const Run run{index, seed, Kind::Probe};
  const StoredRun probe = stored(run, std::move(words));
  // Whatever the folder had a step from keeps its word: runs of fixed time rest on it.
  std::optional<json> summary = summary_of(probe);
  if (!summary) {
    summary = summary_of(stored_iterations(index, seed));
  }
  if (!summary && !runs_iterations(index)) {
    summary = result_of(run, probe);
  }
  return summary ? std::optional(step_seconds_of(*summary)) : std::nullopt;
}

void Contest::hold_iterations(std::size_t round) {
  const std::uint64_t seed = comparison_.seeds[round];
  while (!left_.empty() && left_.front().seed == seed && left_.front().kind == Kind::Iterations) {
    const Run run = left_.front();
    const std::optional<json> summary = result_of(run, stored_iterations(run.index, run.seed));
    if (comparison_.has_iterations) {
      note(result_.iterations, run, summary, failure_);
    }
    if (counts_twice(run.index)) {
      note(result_.time, run, summary, failure_);
    }
  }
}

void Contest::hold_time(std::size_t round) {
  const std::uint64_t seed = comparison_.seeds[round];
  std::optional<double> seconds = comparison_.seconds;
  for (std::size_t i = 0; i < comparison_.configurations.size(); ++i) {
    if (counts_twice(i)) {
      const std::optional<json> summary = summary_of(stored_iterations(i, seed));
      seconds = summary ? std::optional(summary->at("train_seconds").get<double>()) : std::nullopt;
    }
  }
  while (!left_.empty() && left_.front().seed == seed && left_.front().kind == Kind::Time) {
    const Run run = left_.front();
    const std::optional<double> step = seconds ? step_seconds(run.index, seed) : std::nullopt;
    if (!step) {
      left_.erase(left_.begin());
      note(result_.time, run, std::nullopt,
           seconds ? "nobody knows how long its steps take: that run failed"
                   : "nobody knows how long it may take: the run of the baseline failed");
      continue;
    }
    Words words = configuration(run).words;
    const double warm_up = std::stod(take(words, "--warm-up-steps").value_or("0"));
    const double steps = std::max(1.0, std::floor(*seconds / *step)) + warm_up;
    const std::optional<json> summary =
        result_of(run, stored(run, time_words(run.index, static_cast<std::uint64_t>(steps))));
    note(result_.time, run, summary, failure_);
    if (summary) {
      result_.time[run.index].runs.back().budget = seconds;
    }
  }
}

ComparisonResult Contest::hold() {
  for (const Configuration& each : comparison_.configurations) {
    for (auto* outcomes : {&result_.iterations, &result_.time}) {
      outcomes->push_back({.name = each.name, .words = each.own});
    }
  }
  left_ = planned();
  runs_ = left_.size();
  look_at_folder();
  for (std::size_t round = 0; round < comparison_.seeds.size(); ++round) {
    hold_iterations(round);
    hold_time(round);
  }
  if (!comparison_.has_iterations) {
    result_.iterations.clear();
  }
  if (!comparison_.has_time) {
    result_.time.clear();
  }
  return std::move(result_);
}

}  // namespace

Interrupted::Interrupted(int signal)
    : Error(ErrorCode::Cancelled,
            fmt::format("interrupted by {}; the same command goes on where this stopped",
                        launch::name_of_signal(signal))),
      signal_(signal) {}

std::vector<TrainerPlan> check_configurations(const Comparison& comparison) {
  std::vector<TrainerPlan> plans;
  for (const Configuration& each : comparison.configurations) {
    std::string complaint;
    const TrainerAnswer answer =
        ask_trainer(command_of(each.words), [&](std::size_t, Stream, std::string_view line) {
          if (complaint.empty() && line.starts_with(kComplaint)) {
            complaint = line.substr(kComplaint.size());
          }
        });
    if (answer.result.interrupted_by) {
      throw Interrupted(*answer.result.interrupted_by);
    }
    require(answer.plan.has_value(), "--run {}: {}", each.name,
            complaint.empty() ? "this is no command line of a run" : complaint);
    plans.push_back(*answer.plan);
  }
  return plans;
}

ComparisonResult hold_comparison(const Comparison& comparison,
                                 const std::vector<TrainerPlan>& plans, bool has_bar,
                                 const std::function<void(const ComparisonProgress&)>& progress) {
  const FolderLock lock(comparison.folder);
  return Contest(comparison, plans, has_bar, progress).hold();
}

}  // namespace starling::tool
