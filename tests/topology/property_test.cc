// What every schedule promises for every number of workers and every set of survivors.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "starling/topology/factors.h"
#include "tests/topology/dense.h"

namespace starling::topology {
namespace {

struct Case {
  std::string name;
  ScheduleOptions options;
};

// Every built-in schedule with a few options for n workers.
std::vector<Case> cases_for(std::uint32_t n) {
  std::vector<Case> cases;
  for (const char* name : {"complete", "ring", "ring-neighbours", "exponential"}) {
    cases.push_back({name, {.workers = n}});
  }
  for (std::uint32_t size : {1u, 2u, 3u, 4u, 5u, 8u, default_group_size(n), n}) {
    if (size <= n) {
      cases.push_back({"groups", {.workers = n, .group_size = size}});
      cases.push_back({"fixed-groups", {.workers = n, .group_size = size}});
    }
  }
  for (std::uint32_t per_node : {1u, 2u, 3u, 4u, 7u, n}) {
    if (n % per_node == 0) {
      cases.push_back({"aer", {.workers = n, .per_node = per_node}});
    }
  }
  for (std::uint32_t peers = 1; peers <= 4; ++peers) {
    if (peers == 1 || n == 1 || peers <= ceil_log(n, 2)) {
      cases.push_back({"push", {.workers = n, .peers = peers}});
    }
    cases.push_back({"base-k", {.workers = n, .peers = peers}});
  }
  cases.push_back({"pairs", {.workers = n, .seed = n}});
  cases.push_back({"groups", {.workers = n, .sync_period = 3}});
  return cases;
}

std::string text(const Case& c, const View& view, std::int64_t step) {
  return fmt::format("{} workers {} live {} per-node {} group-size {} peers {} step {}", c.name,
                     c.options.workers, view.count(), c.options.per_node,
                     c.options.group_size.value_or(0), c.options.peers, step);
}

// Rows and columns sum to 1 (so the mean is kept), no weight is negative.
void expect_doubly_stochastic(const Matrix& w, const std::string& where) {
  for (std::size_t i = 0; i < w.size(); ++i) {
    double row = 0;
    double column = 0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      ASSERT_GE(w[i][j], -1e-15) << where;
      row += w[i][j];
      column += w[j][i];
    }
    ASSERT_NEAR(row, 1, 1e-15 * static_cast<double>(w.size() + 4)) << where << " row " << i;
    ASSERT_NEAR(column, 1, 1e-15 * static_cast<double>(w.size() + 4)) << where << " column " << i;
  }
}

bool averages_in_projections(const Case& c, std::uint32_t live) {
  return c.name == "complete" || c.name == "ring" || c.name == "aer" || c.name == "groups" ||
         c.name == "fixed-groups" || c.name == "pairs" ||
         (c.name == "exponential" && std::has_single_bit(live));
}

void expect_mean_kept(const Matrix& w, const std::string& where) {
  const auto n = static_cast<double>(w.size());
  double before = 0;
  double after = 0;
  for (std::size_t j = 0; j < w.size(); ++j) {
    const double x = std::sin(1.0 + 3.0 * static_cast<double>(j));
    before += x / n;
    for (std::size_t i = 0; i < w.size(); ++i) {
      after += w[i][j] * x / n;
    }
  }
  ASSERT_NEAR(before, after, (n + 4) * 2.3e-16) << where;
}

void expect_promises(const Case& c, const View& view, std::int64_t most_steps) {
  const auto schedule = make_schedule(c.name, c.options);
  const auto period = schedule->period(view);
  const std::int64_t steps = std::min(period.value_or(3), most_steps);
  for (std::int64_t t = 0; t < steps; ++t) {
    const std::string where = text(c, view, t);
    const Matrix w = dense(*schedule, Step{t}, view);
    expect_doubly_stochastic(w, where);
    expect_mean_kept(w, where);
    if (averages_in_projections(c, view.count())) {
      ASSERT_LT(distance(w, transposed(w)), 1e-15) << where;
      ASSERT_LT(distance(multiply(w, w), w), 1e-13) << where;
    }
    if (period && t < 2) {
      ASSERT_EQ(w, dense(*schedule, Step{t + *period}, view)) << where;
    }
  }
}

TEST(Property, EveryScheduleForOneToSixtyFourWorkers) {
  for (std::uint32_t n = 1; n <= 64; ++n) {
    for (const Case& c : cases_for(n)) {
      expect_promises(c, View::full(n), n <= 24 ? 64 : 3);
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST(Property, EveryScheduleAfterRandomLosses) {
  std::mt19937 random(1);
  for (std::uint32_t n = 2; n <= 64; ++n) {
    for (const double loss : {0.1, 0.5}) {
      const View view = random_view(n, loss, random);
      for (const Case& c : cases_for(n)) {
        expect_promises(c, view, 4);
        expect_promises(c, view.packed(), 2);
        if (testing::Test::HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

TEST(Property, LargerNumbersOfWorkers) {
  std::mt19937 random(2);
  for (int i = 0; i < 4; ++i) {
    const auto n = static_cast<std::uint32_t>(65 + random() % 200);
    const View holes = random_view(n, 0.05, random);
    for (const Case& c : cases_for(n)) {
      expect_promises(c, View::full(n), 2);
      expect_promises(c, holes, 2);
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
}

// The period is the least: no smaller shift repeats the schedule.
TEST(Property, PeriodIsTheLeast) {
  for (std::uint32_t n = 1; n <= 20; ++n) {
    for (const Case& c : cases_for(n)) {
      if (c.options.sync_period) {
        continue;
      }
      const View view = View::full(n);
      const auto schedule = make_schedule(c.name, c.options);
      const auto period = schedule->period(view);
      if (!period || *period == 1) {
        continue;
      }
      std::vector<Matrix> steps;
      for (std::int64_t t = 0; t < 2 * *period; ++t) {
        steps.push_back(dense(*schedule, Step{t}, view));
      }
      for (std::int64_t p = 1; p < *period; ++p) {
        bool repeats = true;
        for (std::int64_t t = 0; t < *period && repeats; ++t) {
          repeats = steps[t] == steps[t + p];
        }
        EXPECT_FALSE(repeats) << text(c, view, 0) << " repeats after " << p << " of " << *period;
      }
    }
  }
}

// Exactness where it is promised, for survivors too where they close ranks.
TEST(Property, ExactWherePromised) {
  std::mt19937 random(3);
  for (std::uint32_t n = 1; n <= 64; ++n) {
    const View full = View::full(n);
    const View lost = random_view(n, 0.2, random);
    for (const View* view : {&full, &lost}) {
      const std::uint32_t m = view->count();
      EXPECT_LE(rounds_to_exact(*make_schedule("complete", {.workers = n}), *view, 0, 1), 1);
      if (std::has_single_bit(m)) {
        const auto rounds = static_cast<std::int64_t>(std::bit_width(m)) - 1;
        EXPECT_EQ(rounds_to_exact(*make_schedule("exponential", {.workers = n}), *view, 1, rounds),
                  rounds);
        EXPECT_EQ(rounds_to_exact(*make_schedule("push", {.workers = n}), *view, 0, rounds),
                  rounds);
      }
    }
  }
}

TEST(Property, DirectedExponentialIsNeverExactOffPowersOfTwo) {
  for (std::uint32_t n : {3u, 5u, 6u, 7u, 12u, 24u}) {
    EXPECT_EQ(rounds_to_exact(*make_schedule("exponential", {.workers = n}), View::full(n), 0, 20),
              std::nullopt);
  }
}

TEST(Property, OneWorkerHasNobodyToAverageWith) {
  for (const Case& c : cases_for(1)) {
    const auto schedule = make_schedule(c.name, c.options);
    for (std::int64_t t = 0; t < 3; ++t) {
      const Row row = schedule->row(Step{t}, Rank{0}, View::full(1));
      ASSERT_TRUE(std::holds_alternative<Group>(row)) << c.name;
      EXPECT_EQ(std::get<Group>(row), uniform_group({Rank{0}})) << c.name;
    }
  }
}

}  // namespace
}  // namespace starling::topology
