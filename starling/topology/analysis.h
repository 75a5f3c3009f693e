// Everything one wants to know of a schedule before training on it. Exact expectations, not
// samples; sparse rows, so that 4,096 workers take seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "starling/topology/schedule.h"
#include "starling/topology/traffic.h"

namespace starling::topology {

struct AnalysisOptions {
  // Rounds of `deviation`. Default: one period, at least 8 and at most 32.
  std::optional<std::int64_t> steps = std::nullopt;
  std::uint32_t per_node = 1;
  Bytes model = {1};
  // Leave out the factor and the stationary deviation, the slow part.
  bool long_run = true;
};

struct Analysis {
  std::uint32_t workers = 0;  // live ones
  std::optional<std::int64_t> period;
  // Over the period, or the steps looked at if there is none or it is longer than 10⁷ rows.
  double row_error = 0;
  double column_error = 0;
  bool connected = false;
  // Rounds from step 0 until everybody has the mean, if that happens within two periods or `steps`.
  std::optional<std::int64_t> exact_after;
  // Expected fraction of the squared deviation left after 0, 1, 2, … rounds of an i.i.d. start.
  std::vector<double> deviation;
  // Of one period (of one step in expectation, for random schedules) in the long run; see
  // spectrum.h. Squared deviations fall by the square of it. None: not known.
  std::optional<double> factor;
  std::optional<double> norm;
  // Squared deviation per worker under unit noise in every step, after mixing, for every step of
  // the period, and their mean; none if it grows without bound or too slowly to tell
  // (stationary.h).
  std::vector<double> stationary_by_step;
  std::optional<double> stationary;
  Traffic traffic;

  bool is_row_stochastic() const { return row_error < 1e-9; }
  bool is_column_stochastic() const { return column_error < 1e-9; }
  bool is_doubly_stochastic() const { return is_row_stochastic() && is_column_stochastic(); }
};

Analysis analyse(const Schedule& schedule, const View& view, const AnalysisOptions& options = {});

// Whether what one worker has can reach every other within a period (within 64 steps for random
// schedules). An engine asks this of a new view, and turns to view.packed() if not.
bool is_connected(const Schedule& schedule, const View& view);

}  // namespace starling::topology
