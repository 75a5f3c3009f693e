// What one run of starling-train came to: the numbers of its summary.json that are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace starling::tool {

struct MeasuredRun {
  struct Evaluation {
    double step = 0;
    double seconds = 0;  // of training, until then
    double accuracy = 0;
    std::optional<double> loss{};  // none: it was not finite
  };

  std::uint64_t seed = 0;
  std::uint64_t steps = 0;
  double accuracy = 0;
  std::optional<double> loss{};
  double seconds = 0;
  double samples_per_second = 0;
  double step_seconds = 0;
  double waiting = 0;  // a share of the time
  double stale_fraction = 0;
  std::optional<double> consensus{};      // distance relative to the model
  std::size_t lost = 0;                   // workers
  std::optional<double> budget{};         // seconds it should have taken
  std::vector<Evaluation> evaluations{};  // in order
};

// From the first timed step to the end of the last, by their number. Of any summary.
double step_seconds_of(const nlohmann::json& summary);

// Evaluations of the warm-up, which has no time, are left out. Throws Error{Input} if there is no
// accuracy in it, nlohmann's
// exceptions if it is no summary.
MeasuredRun measured_run(const nlohmann::json& summary);

// Whether it took more than a tenth less or more than its budget, if it has one: the machine was
// not as fast as when its step was measured.
bool is_off_budget(const MeasuredRun& run);

// Whether it was evaluated more than once: otherwise nobody knows when it came where it ended.
bool has_curve(const MeasuredRun& run);

// When the test loss first was `target` or less, between two evaluations by a straight line; that
// of the first evaluation if it was less already. None: not reached, or no curve.
std::optional<double> time_to_loss(const MeasuredRun& run, double target);

}  // namespace starling::tool
