// The sparse analysis against the tests' own dense arithmetic.
#include "starling/topology/analysis.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "starling/topology/deviation.h"
#include "starling/topology/factors.h"
#include "starling/topology/mixing.h"
#include "starling/topology/stationary.h"
#include "starling/topology/symbol.h"
#include "tests/topology/dense.h"

namespace starling::topology {
namespace {

struct Case {
  const char* name;
  ScheduleOptions options;
};

const std::vector<Case> kCases = {
    {"complete", {.workers = 9}},
    {"ring", {.workers = 12}},
    {"ring", {.workers = 11}},
    {"ring-neighbours", {.workers = 10}},
    {"exponential", {.workers = 13}},
    {"push", {.workers = 12, .peers = 3}},
    {"aer", {.workers = 15, .per_node = 3}},
    {"groups", {.workers = 17, .group_size = 5}},
    {"groups", {.workers = 29, .group_size = 3}},
    {"base-k", {.workers = 14, .peers = 2}},
    {"groups", {.workers = 12, .group_size = 3, .sync_period = 5}},
};

std::vector<Mixing> period_of(const Schedule& schedule, const View& view) {
  std::vector<Mixing> steps;
  for (std::int64_t t = 0; t < *schedule.period(view); ++t) {
    steps.emplace_back(schedule, Step{t}, view);
  }
  return steps;
}

// Covariance summed by brute force until nothing is added any more.
double dense_stationary(const Schedule& schedule, const View& view) {
  const std::size_t n = view.count();
  const std::int64_t period = *schedule.period(view);
  const Matrix j = averaging(n);
  Matrix noise = identity(n);
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      noise[a][b] -= j[a][b];
    }
  }
  Matrix c(n, std::vector<double>(n, 0));
  double mean = 0;
  for (std::int64_t t = 0; t < 150 * period; ++t) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        c[a][b] += noise[a][b];
      }
    }
    const Matrix w = dense(schedule, Step{t % period}, view);
    c = multiply(multiply(w, c), transposed(w));
    if (t >= 149 * period) {
      for (std::size_t a = 0; a < n; ++a) {
        mean += c[a][a] / static_cast<double>(n) / static_cast<double>(period);
      }
    }
  }
  return mean;
}

TEST(Analysis, DeviationFactorAndStationaryAgreeWithDenseProducts) {
  for (const Case& c : kCases) {
    const auto schedule = make_schedule(c.name, c.options);
    const View view = View::full(c.options.workers);
    const Analysis a = analyse(*schedule, view, {.steps = 10});
    Matrix product = identity(view.count());
    for (std::int64_t t = 0; t < 10; ++t) {
      EXPECT_NEAR(a.deviation[t], deviation_left(product), 1e-13) << c.name << " " << t;
      product = multiply(dense(*schedule, Step{t}, view), product);
    }
    ASSERT_TRUE(a.stationary) << c.name;
    EXPECT_NEAR(*a.stationary, dense_stationary(*schedule, view), 1e-9 * (1 + *a.stationary))
        << c.name << " " << c.options.workers;
    EXPECT_EQ(a.stationary_by_step.size(), static_cast<std::size_t>(*a.period));
    if (a.exact_after) {
      EXPECT_EQ(*a.factor, 0) << c.name;
    } else if (a.factor) {
      // Forty periods shrink a deviation by about factor^40.
      Matrix period = identity(view.count());
      for (std::int64_t t = 0; t < *a.period; ++t) {
        period = multiply(dense(*schedule, Step{t}, view), period);
      }
      Matrix power = period;
      for (int k = 1; k < 20; ++k) {
        power = multiply(period, power);
      }
      const double twenty = std::sqrt(deviation_left(power));
      for (int k = 20; k < 40; ++k) {
        power = multiply(period, power);
      }
      const double forty = std::sqrt(deviation_left(power));
      if (forty > 1e-13) {
        EXPECT_NEAR(std::pow(forty / twenty, 0.05), *a.factor, 0.02 * *a.factor) << c.name;
      }
    }
  }
}

// Both ways to the stationary deviation, where both exist.
TEST(Analysis, FrequenciesAgreeWithTheSum) {
  for (const Case& c : kCases) {
    const auto schedule = make_schedule(c.name, c.options);
    const auto period = period_of(*schedule, View::full(c.options.workers));
    const std::uint32_t shift = shift_invariance(period);
    if (shift == 0) {
      continue;
    }
    const auto symbol = analyse_symbol(period, shift);
    ASSERT_TRUE(symbol) << c.name;
    const auto sum = stationary_deviation(period, symbol->spectrum);
    ASSERT_TRUE(sum) << c.name;
    for (std::size_t s = 0; s < sum->size(); ++s) {
      EXPECT_NEAR(symbol->stationary[s], (*sum)[s], 1e-9 * (1 + (*sum)[s])) << c.name;
    }
    if (symbol->spectrum.norm > 1e-12) {
      const Spectrum found = spectrum(period);
      EXPECT_NEAR(found.norm, symbol->spectrum.norm, 1e-10) << c.name;
      EXPECT_NEAR(found.factor.value(), *symbol->spectrum.factor, 1e-8) << c.name;
    }
  }
}

TEST(Analysis, FindsTheSymmetryThatIsThere) {
  const auto shift = [](const char* name, std::uint32_t n) {
    const auto schedule = make_schedule(name, {.workers = n});
    return shift_invariance(period_of(*schedule, View::full(n)));
  };
  EXPECT_EQ(shift("ring-neighbours", 20), 1u);
  EXPECT_EQ(shift("exponential", 20), 1u);
  EXPECT_EQ(shift("ring", 20), 2u);
  EXPECT_EQ(shift("ring", 21), 0u);
  EXPECT_EQ(shift("exponential", 16), 0u);
  EXPECT_EQ(shift("base-k", 21), 0u);
}

TEST(Analysis, TransposedIsTransposed) {
  for (const Case& c : kCases) {
    const auto schedule = make_schedule(c.name, c.options);
    const View view = View::full(c.options.workers);
    for (std::int64_t t = 0; t < *schedule->period(view); ++t) {
      const Mixing mixing(*schedule, Step{t}, view);
      const Matrix w = dense(*schedule, Step{t}, view);
      for (std::uint32_t i = 0; i < view.count(); ++i) {
        std::vector<double> column(view.count(), 0.0);
        column[i] = 1;
        std::vector<double> row = column;
        mixing.apply(column, 1);
        mixing.apply_transposed(row, 1);
        for (std::uint32_t j = 0; j < view.count(); ++j) {
          ASSERT_NEAR(column[j], w[j][i], 1e-15) << c.name;
          ASSERT_NEAR(row[j], w[i][j], 1e-15) << c.name;
        }
      }
    }
  }
}

// A grid with holes stays within 1.06 of the deviation of an exact grid of the same rows and
// columns, from 16 workers on.
TEST(Analysis, HolesCostLittle) {
  int grids = 0;
  for (std::uint32_t n = 16; n <= 150; ++n) {
    const auto size = static_cast<std::uint32_t>(std::ceil(std::sqrt(n)));
    if (flattest_factors(n, ceil_log(n, size), size)) {
      continue;
    }
    const auto schedule = make_schedule("groups", {.workers = n, .group_size = size});
    const Analysis a = analyse(*schedule, View::full(n));
    const std::uint32_t rows = (n + size - 1) / size;
    const std::uint32_t columns = (n + rows - 1) / rows;
    const double exact = (rows + columns) / 2.0 / n - 1.0 / n;
    EXPECT_LE(*a.stationary, 1.06 * exact) << n;
    EXPECT_GE(*a.stationary, exact) << n;
    ++grids;
  }
  EXPECT_GT(grids, 80);
}

TEST(Analysis, ConnectivityAndOneWorker) {
  const View view = View::full(8);
  EXPECT_FALSE(is_connected(*make_schedule("fixed-groups", {.workers = 8, .group_size = 4}), view));
  EXPECT_TRUE(is_connected(*make_schedule("pairs", {.workers = 8}), view));
  for (const ScheduleEntry& entry : schedule_entries()) {
    if (entry.make == nullptr) {
      continue;
    }
    const Analysis a = analyse(*make_schedule(entry.name, {.workers = 1}), View::full(1));
    EXPECT_EQ(a.exact_after, 0) << entry.name;
    EXPECT_TRUE(a.connected) << entry.name;
    EXPECT_EQ(a.stationary, 0.0) << entry.name;
    EXPECT_EQ(a.traffic.node_peak, 0) << entry.name;
    for (const double left : a.deviation) {
      EXPECT_EQ(left, 0) << entry.name;
    }
  }
}

TEST(Analysis, RandomPairsInExpectation) {
  for (const std::uint32_t n : {8u, 9u}) {
    const Analysis a = analyse(*make_schedule("pairs", {.workers = n}), View::full(n));
    EXPECT_EQ(a.period, std::nullopt);
    const double factor = n == 8 ? 6.0 / 14 : 0.5;
    EXPECT_NEAR(*a.factor * *a.factor, factor, 1e-12);
    EXPECT_NEAR(*a.stationary, (1 - 1.0 / n) * factor / (1 - factor), 1e-12);
  }
}

}  // namespace
}  // namespace starling::topology
