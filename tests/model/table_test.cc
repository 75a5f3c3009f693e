// Step times of whole grids of settings, within 0.5 %: variance, buckets, cost and schedule; the
// growth with the number of workers; the speed-up surface.
#include <gtest/gtest.h>

#include <array>

#include "tests/model/case.h"

namespace starling::model {
namespace {

constexpr double kTolerance = 0.005;  // relative

void expect_step(const Case& from, double expected, const char* what) {
  EXPECT_NEAR(step_of(from), expected, kTolerance * expected)
      << what << ", variance " << from.variance << ", " << from.buckets << " buckets, "
      << from.workers << " workers, across " << from.costs.across;
}

TEST(Table, SchedulesByVarianceBucketsAndCost) {
  struct Row {
    double variance;
    std::size_t buckets;
    double across;
    std::array<double, 5> steps;
  };
  const Row rows[] = {{0, 4, 0.5, {1.1450, 1.0200, 1.0200, 1.0200, 1.0200}},
                      {0, 4, 1.0, {1.5200, 1.0200, 1.0200, 1.0200, 1.0200}},
                      {0, 4, 2.0, {2.5200, 2.0000, 1.2550, 1.3825, 1.3825}},
                      {.0017, 4, 0.5, {1.218, 1.023, 1.022, 1.022, 1.023}},
                      {.0134, 1, 0.0, {1.2245, 1.042, 1.034, 1.036, 1.040}},
                      {.0134, 4, 0.5, {1.3495, 1.045, 1.035, 1.037, 1.042}},
                      {.0134, 4, 1.0, {1.622, 1.056, 1.037, 1.043, 1.051}}};
  for (const Row& row : rows) {
    Case from{.variance = row.variance,
              .buckets = row.buckets,
              .update = 0.02,
              .costs = {0.2 * row.across, row.across, row.across},
              .steps = 4000};
    from.algorithm = "all-reduce";
    expect_step(from, row.steps[0], "all-reduce");
    from.algorithm = "dadam";
    const char* schedules[] = {"complete", "ring", "exponential", "aer"};
    for (std::size_t i = 0; i < 4; ++i) {
      from.schedule = schedules[i];
      expect_step(from, row.steps[i + 1], schedules[i]);
      if (row.variance == 0) {
        EXPECT_NEAR(step_of(from), row.steps[i + 1], 1e-9) << schedules[i];
      }
    }
  }
}

TEST(Table, GrowthWithTheNumberOfWorkers) {
  struct Row {
    std::uint32_t workers;
    double all_reduce;
    double aer;  // 0: none
    double exponential;
    double complete;
  };
  const Row rows[] = {{4, 1.120, 0, 1.010, 1.012},      {8, 1.165, 1.017, 1.014, 1.017},
                      {16, 1.205, 1.020, 1.016, 1.022}, {32, 1.240, 1.022, 1.018, 1.027},
                      {64, 1.272, 1.024, 1.020, 1.032}, {128, 1.300, 1.026, 1.022, 1.036}};
  for (const Row& row : rows) {
    Case from{.workers = row.workers, .variance = .0134, .buckets = 4, .steps = 2500};
    from.algorithm = "all-reduce";
    expect_step(from, row.all_reduce, "all-reduce");
    from.algorithm = "dadam";
    expect_step(from, row.complete, "complete");
    from.schedule = "exponential";
    expect_step(from, row.exponential, "exponential");
    if (row.aer > 0) {
      from.schedule = "aer";
      expect_step(from, row.aer, "aer");
    }
    if (row.workers >= 16) {
      from.schedule = "ring";
      expect_step(from, 1.015, "ring");
    }
  }
}

TEST(Table, SpeedUpSurface) {
  const double costs[] = {0, .1, .25, .5, .75, 1, 1.5, 2, 3, 5};
  struct Row {
    double variance;
    std::array<double, 10> gains;
  };
  const Row rows[] = {{0, {1.00, 1.01, 1.03, 1.05, 1.15, 1.40, 1.81, 1.87, 1.94, 2.01}},
                      {.0017, {1.07, 1.08, 1.10, 1.12, 1.18, 1.42, 1.82, 1.88, 1.95, 2.01}},
                      {.0134, {1.18, 1.19, 1.20, 1.23, 1.25, 1.44, 1.82, 1.88, 1.95, 2.02}},
                      {.04, {1.28, 1.29, 1.31, 1.33, 1.35, 1.45, 1.80, 1.89, 1.95, 2.02}}};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < std::size(costs); ++i) {
      const double c = costs[i];
      Case from{.variance = row.variance,
                .buckets = 10,
                .costs = {.inside = .1 * c, .across = .933 * c, .everybody = c},
                .steps = row.variance == 0 ? 400u : 2000u};
      from.algorithm = "all-reduce";
      const double all = step_of(from);
      from.algorithm = "dadam";
      from.schedule = "aer";
      // The figures are rounded to hundredths.
      EXPECT_NEAR(all / step_of(from), row.gains[i], 0.005 + kTolerance * row.gains[i])
          << "variance " << row.variance << ", c " << c;
    }
  }
}

TEST(Table, OverlapAloneVanishesOnSlowNetworks) {
  const double costs[] = {0, .1, .25, .5, .75, 1, 1.5, 2, 3, 5};
  const double gains[] = {1.00, 1.01, 1.03, 1.05, 1.15, 1.40, 1.27, 1.20, 1.13, 1.08};
  for (std::size_t i = 0; i < std::size(costs); ++i) {
    Case from{.buckets = 10, .costs = all_the_same(costs[i]), .steps = 400};
    const double complete = step_of(from);
    from.algorithm = "all-reduce";
    EXPECT_NEAR(step_of(from) / complete, gains[i], 0.0051) << costs[i];
  }
}

}  // namespace
}  // namespace starling::model
