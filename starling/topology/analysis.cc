#include "starling/topology/analysis.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "starling/base/error.h"
#include "starling/topology/deviation.h"
#include "starling/topology/mixing.h"
#include "starling/topology/spectrum.h"
#include "starling/topology/stationary.h"
#include "starling/topology/symbol.h"

namespace starling::topology {
namespace {

constexpr std::int64_t kMostSteps = 32;
constexpr std::int64_t kRandomSteps = 64;
// Rows held at once: half a gigabyte. Longer periods are looked at as far as that goes.
constexpr std::int64_t kMostRows = 10'000'000;

std::vector<Mixing> mixings(const Schedule& schedule, const View& view, std::int64_t steps) {
  std::vector<Mixing> result;
  result.reserve(static_cast<std::size_t>(steps));
  for (std::int64_t t = 0; t < steps; ++t) {
    result.emplace_back(schedule, Step{t}, view);
  }
  return result;
}

// Workers joined by anything that any of the steps does. In doubly stochastic steps weight flows
// back as it flows out, so that joined means reachable both ways.
class Components {
 public:
  explicit Components(std::uint32_t n) : parent_(n), count_(n) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  void join(const Mixing& step) {
    for (const auto& group : step.groups()) {
      for (const std::uint32_t member : group.members) {
        join(group.members.front(), member);
      }
    }
    for (const auto& row : step.singles()) {
      for (const auto& term : row.terms) {
        join(row.worker, term.from);
      }
    }
  }
  bool all_joined() const { return count_ == 1; }

 private:
  std::uint32_t root(std::uint32_t i) {
    while (parent_[i] != i) {
      parent_[i] = parent_[parent_[i]];
      i = parent_[i];
    }
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t from = root(a);
    const std::uint32_t to = root(b);
    if (from != to) {
      parent_[from] = to;
      --count_;
    }
  }

  std::vector<std::uint32_t> parent_;
  std::uint32_t count_;
};

void set_stationary(Analysis& result, std::vector<double> by_step) {
  result.stationary =
      std::accumulate(by_step.begin(), by_step.end(), 0.0) / static_cast<double>(by_step.size());
  result.stationary_by_step = std::move(by_step);
}

// A factor λ per step in expectation: v = λ (v + 1 − 1/n).
void expect_long_run(Analysis& result, double squared_factor) {
  result.factor = std::sqrt(squared_factor);
  set_stationary(result, {squared_factor / (1 - squared_factor) * (1 - 1.0 / result.workers)});
}

void sum_long_run(Analysis& result, std::span<const Mixing> period) {
  const bool exact =
      result.exact_after && *result.exact_after <= static_cast<std::int64_t>(period.size());
  if (const std::uint32_t shift = shift_invariance(period); shift > 0 && !exact) {
    if (auto symbol = analyse_symbol(period, shift)) {
      result.norm = symbol->spectrum.norm;
      result.factor = symbol->spectrum.factor;
      set_stationary(result, std::move(symbol->stationary));
      return;
    }
  }
  const Spectrum found = exact ? Spectrum{0, 0} : spectrum(period);
  result.norm = found.norm;
  result.factor = result.exact_after ? 0 : found.factor;
  if (result.connected) {
    if (auto by_step = stationary_deviation(period, found)) {
      set_stationary(result, std::move(*by_step));
    }
  }
}

}  // namespace

Analysis analyse(const Schedule& schedule, const View& view, const AnalysisOptions& options) {
  Analysis result;
  result.workers = view.count();
  result.period = schedule.period(view);
  const std::int64_t steps =
      options.steps.value_or(std::clamp<std::int64_t>(result.period.value_or(8), 8, kMostSteps));
  require(steps >= 1, "{} steps: at least 1 is needed", steps);
  const std::int64_t most = std::max(steps, kMostRows / view.count());
  const std::int64_t period = std::min(result.period.value_or(steps), most);
  const auto rounds = mixings(schedule, view, std::clamp(2 * period, steps, most));
  Components components(view.count());
  for (std::int64_t t = 0; t < period; ++t) {
    result.row_error = std::max(result.row_error, rounds[t].row_error());
    result.column_error = std::max(result.column_error, rounds[t].column_error());
    components.join(rounds[t]);
  }
  result.connected = components.all_joined();
  const std::span all(rounds);
  result.exact_after = rounds_to_exact(all);
  result.deviation = deviation_left(all.first(static_cast<std::size_t>(steps)));
  result.traffic = traffic(schedule, view, period, options.per_node, options.model);
  if (view.count() == 1) {
    result.factor = result.norm = 0;
    set_stationary(result, {0.0});
  } else if (const auto expected = schedule.expected_factor(view); expected && !result.period) {
    expect_long_run(result, *expected);
  } else if (result.period == period && options.long_run) {
    sum_long_run(result, all.first(static_cast<std::size_t>(period)));
  }
  return result;
}

bool is_connected(const Schedule& schedule, const View& view) {
  const std::int64_t steps = schedule.period(view).value_or(kRandomSteps);
  Components components(view.count());
  for (std::int64_t t = 0; t < steps && !components.all_joined(); ++t) {
    components.join(Mixing(schedule, Step{t}, view));
  }
  return components.all_joined();
}

}  // namespace starling::topology
