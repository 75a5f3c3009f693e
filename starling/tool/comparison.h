// Runs every configuration with every seed, one run at a time, and keeps what was done
// (run_store.h): the same comparison, started again, runs only what is missing.
//
// Seeds are outermost, so that pairs are complete early and lie close in time; every other seed
// goes through the configurations backwards.
//
// Two budgets. Iterations: the words as given. Time: the words with as many --steps as fit into so
// many seconds, by what a step of this configuration took with this seed under the other budget, or
// in a short probe; so learning-rate schedules end when the time does. Unless seconds are given
// they are what the baseline took for its words, whose run then counts for both budgets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/tool/comparison_report.h"
#include "starling/tool/trainer.h"
#include "starling/tool/words.h"

namespace starling::tool {

struct Configuration {
  std::string name;
  Words own{};    // what sets it apart
  Words words{};  // all of `starling train`, but for --seed and --out
};

struct Comparison {
  std::filesystem::path folder;
  std::vector<Configuration> configurations;
  std::string baseline;
  std::vector<std::uint64_t> seeds;
  bool has_iterations = true;  // which budgets
  bool has_time = false;
  std::optional<double> seconds{};
};

struct ComparisonResult {
  std::vector<Outcomes> iterations;  // empty: not asked for
  std::vector<Outcomes> time;
};

// Where a comparison is.
struct ComparisonProgress {
  std::size_t run = 0;  // from 1
  std::size_t runs = 0;
  std::string what{};            // "wagma, seed 3"
  std::string step{};            // "step 20/100"; empty: it begins
  std::string ended{};           // how the run ended; empty: it has not
  std::optional<double> left{};  // seconds, of everything; none: nobody knows yet
};

class Interrupted : public Error {
 public:
  explicit Interrupted(int signal);
  int signal() const { return signal_; }

 private:
  int signal_;
};

// Asks the trainer about every configuration. Throws Error{Input} with its complaint.
std::vector<TrainerPlan> check_configurations(const Comparison& comparison);

// Runs that fail are in the outcomes. Throws Error{Input} if a run calls its input wrong or the
// folder holds other runs, before anything is run if that can be known; Interrupted; and
// Error{Environment}. `plans`: of check_configurations().
ComparisonResult hold_comparison(const Comparison& comparison,
                                 const std::vector<TrainerPlan>& plans, bool has_bar,
                                 const std::function<void(const ComparisonProgress&)>& progress);

}  // namespace starling::tool
