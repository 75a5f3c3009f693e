// What the runs of a comparison say, as numbers. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "starling/tool/measured_run.h"
#include "starling/tool/verdict.h"
#include "starling/tool/words.h"

namespace starling::tool {

// One configuration under one budget.
struct Outcomes {
  struct Failure {
    std::uint64_t seed = 0;
    std::string why{};
  };
  std::string name;
  Words words;                      // of the configuration alone
  std::vector<MeasuredRun> runs{};  // that came to their end
  std::vector<Failure> failures{};
};

struct Yardstick {
  std::string baseline;
  double margin = 0;                    // of accuracy, a fraction
  std::optional<double> target_loss{};  // none: what the baseline has in the end, per seed
};

// A mean; the interval needs two values.
struct Estimate {
  double mean = 0;
  std::optional<Interval> interval{};
};

// Nothing is there of which there is no value at all.
struct Row {
  const Outcomes* outcomes = nullptr;
  bool is_baseline = false;
  std::size_t pairs = 0;  // seeds of which the baseline has a run as well

  std::optional<Estimate> accuracy{};
  std::optional<Estimate> loss{};
  std::optional<Estimate> steps{};
  std::optional<Estimate> seconds{};
  std::optional<Estimate> samples_per_second{};
  std::optional<Estimate> step_seconds{};
  std::optional<Estimate> waiting{};
  std::optional<Estimate> stale_fraction{};
  std::optional<Estimate> consensus{};

  // Against the baseline; none of the baseline itself.
  std::optional<Estimate> difference{};  // of accuracy
  Verdict verdict = Verdict::None;
  std::size_t off_budget = 0;  // runs behind it, of the baseline too, that took another time
  std::optional<Estimate> speed_ratio{};  // of samples per second

  // By run; none: no target, or not reached.
  std::vector<std::optional<double>> times_to_loss{};
  std::size_t targets = 0;  // runs of which there is one
  std::size_t reached = 0;
  std::optional<Estimate> time_to_loss{};        // if all that have a target did
  std::optional<Estimate> time_to_loss_ratio{};  // if those of all pairs did, both
  Pace pace = Pace::None;
};

// One for each, in order. Rows point into `outcomes`.
std::vector<Row> rows_of(const std::vector<Outcomes>& outcomes, const Yardstick& yardstick);

}  // namespace starling::tool
