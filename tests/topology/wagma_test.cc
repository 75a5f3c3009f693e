// The groups, mixing numbers and acceptance tests of the WAGMA specification: sections 2.2 to 2.4,
// G1 to G5 and N3. What its authors refuse works here, and is tested to.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <numeric>

#include "starling/base/error.h"
#include "starling/topology/analysis.h"
#include "tests/topology/dense.h"

namespace starling::topology {
namespace {

using Ranks = std::vector<std::uint32_t>;

std::unique_ptr<Schedule> groups(std::uint32_t n, std::uint32_t size) {
  return make_schedule("groups", {.workers = n, .group_size = size});
}

Ranks group_of(const Schedule& schedule, std::int64_t t, std::uint32_t rank, const View& view) {
  Ranks members;
  const auto group = std::get<Group>(schedule.row(Step{t}, Rank{rank}, view));
  for (const Rank member : group.members) {
    members.push_back(member.value);
  }
  return members;
}

// All groups of a step, by their first member.
std::vector<Ranks> partition(const Schedule& schedule, std::int64_t t, const View& view) {
  std::vector<Ranks> all;
  for (std::uint32_t rank = 0; rank < view.workers(); ++rank) {
    const Ranks members = group_of(schedule, t, rank, view);
    if (members.front() == rank) {
      all.push_back(members);
    }
  }
  return all;
}

// Bits in which members of a group differ from each other.
std::uint32_t varied_bits(const Ranks& members) {
  std::uint32_t bits = 0;
  for (const std::uint32_t member : members) {
    bits |= member ^ members.front();
  }
  return bits;
}

// G1: partition, size, K distinct bits below P, the same for all. Being all ranks that agree
// outside K bits makes the partner relation an involution.
TEST(Wagma, G1GroupsPartitionTheRanks) {
  for (std::uint32_t p = 2; p <= 1024; p *= 2) {
    const View view = View::full(p);
    const auto bits = static_cast<std::int64_t>(std::bit_width(p)) - 1;
    for (std::uint32_t s = 2; s <= p; s *= 2) {
      const auto schedule = groups(p, s);
      for (std::int64_t t = 0; t < 3 * bits; ++t) {
        std::vector<bool> seen(p, false);
        std::uint32_t mask = 0;
        for (std::uint32_t rank = 0; rank < p; ++rank) {
          if (seen[rank]) {
            continue;
          }
          const Ranks members = group_of(*schedule, t, rank, view);
          ASSERT_EQ(members.size(), s);
          mask = rank == 0 ? varied_bits(members) : mask;
          ASSERT_EQ(varied_bits(members), mask);
          ASSERT_EQ(std::popcount(mask), std::bit_width(s) - 1);
          ASSERT_LT(mask, p);
          for (const std::uint32_t member : members) {
            ASSERT_FALSE(seen[member]);
            seen[member] = true;
          }
          ASSERT_EQ(group_of(*schedule, t, members.back(), view), members);
        }
      }
    }
  }
}

// G2: the tables of section 2.2.
TEST(Wagma, G2Tables) {
  const View eight = View::full(8);
  const auto s4 = groups(8, 4);
  using Partition = std::vector<Ranks>;
  for (std::int64_t t = 0; t < 9; t += 3) {
    EXPECT_EQ(partition(*s4, t, eight), (Partition{{0, 1, 2, 3}, {4, 5, 6, 7}}));
    EXPECT_EQ(partition(*s4, t + 1, eight), (Partition{{0, 1, 4, 5}, {2, 3, 6, 7}}));
    EXPECT_EQ(partition(*s4, t + 2, eight), (Partition{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  }
  const View four = View::full(4);
  const auto s2 = groups(4, 2);
  EXPECT_EQ(partition(*s2, 0, four), (Partition{{0, 1}, {2, 3}}));
  EXPECT_EQ(partition(*s2, 1, four), (Partition{{0, 2}, {1, 3}}));
  const View sixteen = View::full(16);
  const auto s16 = groups(16, 4);
  EXPECT_EQ(partition(*s16, 0, sixteen),
            (Partition{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  EXPECT_EQ(partition(*s16, 1, sixteen),
            (Partition{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  const View many = View::full(64);
  EXPECT_EQ(varied_bits(group_of(*groups(64, 8), 0, 0, many)), 1u | 2u | 4u);
  EXPECT_EQ(varied_bits(group_of(*groups(64, 8), 1, 0, many)), 8u | 16u | 32u);
}

// The sync iterations of tau = 10 are 9, 19, 29, …; the groups keep counting through them.
TEST(Wagma, SyncEveryTau) {
  const View view = View::full(8);
  const auto plain = groups(8, 4);
  const auto synced = make_schedule("groups", {.workers = 8, .group_size = 4, .sync_period = 10});
  for (std::int64_t t = 0; t < 40; ++t) {
    const Ranks all = {0, 1, 2, 3, 4, 5, 6, 7};
    EXPECT_EQ(group_of(*synced, t, 3, view), t % 10 == 9 ? all : group_of(*plain, t, 3, view));
  }
}

// G3: the period is G / gcd(G, K).
TEST(Wagma, G3Period) {
  for (std::uint32_t g = 1; g <= 10; ++g) {
    for (std::uint32_t k = 1; k <= g; ++k) {
      const View view = View::full(1u << g);
      const auto schedule = groups(1u << g, 1u << k);
      const std::int64_t period = g / std::gcd(g, k);
      EXPECT_EQ(schedule->period(view), period);
      const auto bits = [&](std::int64_t t) {
        return varied_bits(group_of(*schedule, t, 0, view));
      };
      for (std::int64_t t = 0; t < period; ++t) {
        EXPECT_EQ(bits(t), bits(t + period));
        EXPECT_TRUE(t == 0 || bits(t) != bits(0)) << g << " " << k << " " << t;
      }
    }
  }
}

// G4: from any step, ⌈log_S P⌉ steps use all bits and one fewer do not.
TEST(Wagma, G4PropagatesInLogSteps) {
  for (std::uint32_t g = 1; g <= 10; ++g) {
    for (std::uint32_t k = 1; k <= g; ++k) {
      const View view = View::full(1u << g);
      const auto schedule = groups(1u << g, 1u << k);
      const std::uint32_t steps = (g + k - 1) / k;
      for (std::int64_t first = 0; first < 2 * g; ++first) {
        std::uint32_t bits = 0;
        for (std::uint32_t i = 0; i < steps; ++i) {
          EXPECT_NE(bits, (1u << g) - 1);
          bits |= varied_bits(group_of(*schedule, first + i, 0, view));
        }
        EXPECT_EQ(bits, (1u << g) - 1);
      }
    }
  }
}

// G5: what is refused elsewhere works; only groups larger than everybody are an error.
TEST(Wagma, G5GeneralNumbersWork) {
  for (const auto& [p, s] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{6, 2}, {6, 4}, {12, 3}, {100, 10}}) {
    const Analysis a = analyse(*groups(p, s), View::full(p));
    EXPECT_TRUE(a.is_doubly_stochastic());
    EXPECT_TRUE(a.connected);
  }
  EXPECT_THROW(groups(8, 16), Error);
  EXPECT_THROW(groups(8, 0), Error);
}

// Section 2.3: exact after ⌈log_S P⌉ iterations from any start.
TEST(Wagma, ExactRoundCounts) {
  const std::vector<std::array<std::uint32_t, 3>> table = {
      {8, 4, 2},   {16, 4, 2},   {32, 4, 3},   {32, 8, 2},   {64, 8, 2},
      {128, 8, 3}, {128, 16, 2}, {256, 16, 2}, {512, 16, 3}, {1024, 32, 2}};
  for (const auto& [p, s, rounds] : table) {
    const Analysis a = analyse(*groups(p, s), View::full(p), {.long_run = false});
    EXPECT_EQ(a.exact_after, rounds) << p << " " << s;
    if (p <= 128) {
      for (std::int64_t first = 1; first <= 4; ++first) {
        EXPECT_EQ(rounds_to_exact(*groups(p, s), View::full(p), first, rounds), rounds);
      }
    }
  }
}

// Root of the deviation left after each round, as section 2.4 lists it, to three digits.
void expect_consensus(const char* name, const ScheduleOptions& options,
                      const std::vector<double>& expected) {
  const Analysis a =
      analyse(*make_schedule(name, options), View::full(options.workers), {.steps = 12});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(std::sqrt(a.deviation[i + 1]), expected[i], 0.0005) << name << " round " << i + 1;
  }
}

TEST(Wagma, N3ConsensusAfterEachRound) {
  const std::uint32_t n = 64;
  expect_consensus("groups", {.workers = n, .group_size = 8}, {.333, 0});
  expect_consensus("groups", {.workers = n, .group_size = 4}, {.488, .218, 0});
  const std::vector<double> one_peer = {.701, .488, .333, .218, .126, 0};
  expect_consensus("groups", {.workers = n, .group_size = 2}, one_peer);
  expect_consensus("push", {.workers = n}, one_peer);
  expect_consensus("exponential", {.workers = n}, one_peer);
  expect_consensus("push", {.workers = n, .peers = 2}, {.568, .384, .258, .161, .072, .037});
  expect_consensus("ring-neighbours", {.workers = n}, {.568, .472, .425, .394, .372, .354});
  const auto after_twelve = [&](const char* name, std::uint32_t peers) {
    const auto schedule = make_schedule(name, {.workers = n, .peers = peers});
    return std::sqrt(analyse(*schedule, View::full(n), {.steps = 12}).deviation[12]);
  };
  EXPECT_NEAR(after_twelve("push", 2), .003, .0005);
  EXPECT_NEAR(after_twelve("ring-neighbours", 1), .291, .0005);
}

// N3 as a run: 1000 coordinates of random numbers, averaged by the rows themselves.
TEST(Wagma, N3RunOfRandomVectors) {
  const std::uint32_t n = 64;
  const auto left = [&](const char* name, const ScheduleOptions& options, std::int64_t rounds) {
    const auto schedule = make_schedule(name, options);
    const View view = View::full(n);
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    std::vector<std::vector<double>> x(n, std::vector<double>(1000));
    for (auto& model : x) {
      for (double& value : model) {
        value = normal(random);
      }
    }
    const auto deviation = [&] {
      double sum = 0;
      for (std::size_t c = 0; c < 1000; ++c) {
        double mean = 0;
        for (const auto& model : x) {
          mean += model[c] / n;
        }
        for (const auto& model : x) {
          sum += (model[c] - mean) * (model[c] - mean);
        }
      }
      return std::sqrt(sum);
    };
    const double before = deviation();
    for (std::int64_t t = 0; t < rounds; ++t) {
      const Matrix w = dense(*schedule, Step{t}, view);
      std::vector<std::vector<double>> mixed(n, std::vector<double>(1000, 0.0));
      for (std::uint32_t i = 0; i < n; ++i) {
        for (std::uint32_t j = 0; j < n; ++j) {
          for (std::size_t c = 0; w[i][j] != 0 && c < 1000; ++c) {
            mixed[i][c] += w[i][j] * x[j][c];
          }
        }
      }
      x = mixed;
    }
    return deviation() / before;
  };
  EXPECT_LE(left("groups", {.workers = n, .group_size = 8}, 2), 1e-6);
  EXPECT_GT(left("groups", {.workers = n, .group_size = 8}, 1), 0.3);
  EXPECT_LE(left("groups", {.workers = n, .group_size = 4}, 3), 1e-6);
  EXPECT_LE(left("push", {.workers = n}, 6), 1e-6);
  EXPECT_NEAR(left("ring-neighbours", {.workers = n}, 12), .29, .02);
}

TEST(Wagma, RingSecondEigenvalue) {
  for (const auto& [n, value, half_digit] : std::vector<std::tuple<std::uint32_t, double, double>>{
           {16, .9493, .00005}, {64, .99679, .000005}, {256, .99980, .000005}}) {
    const Analysis a = analyse(*make_schedule("ring-neighbours", {.workers = n}), View::full(n));
    EXPECT_NEAR(*a.factor, value, half_digit);
    EXPECT_NEAR(*a.factor, (1 + 2 * std::cos(2 * std::acos(-1.0) / n)) / 3, 1e-12);
  }
}

// The table of section 2.4: variance after mixing under unit noise, P = 64, tau = 10.
double stationary(const char* name, const ScheduleOptions& options) {
  const Analysis a = analyse(*make_schedule(name, options), View::full(options.workers));
  return a.stationary.value_or(-1);
}

TEST(Wagma, StationaryVarianceTable) {
  const std::uint32_t n = 64;
  EXPECT_NEAR(stationary("groups", {.workers = n, .group_size = 8, .sync_period = 10}), .098,
              .0005);
  EXPECT_NEAR(stationary("groups", {.workers = n, .group_size = 8}), .109375, 1e-12);
  EXPECT_NEAR(stationary("groups", {.workers = n, .group_size = 4, .sync_period = 10}), .248,
              .0005);
  EXPECT_NEAR(stationary("groups", {.workers = n, .group_size = 4}), .281, .0005);
  EXPECT_NEAR(stationary("groups", {.workers = n, .group_size = 2, .sync_period = 10}), .736,
              .0005);
  EXPECT_NEAR(stationary("groups", {.workers = n, .group_size = 2}), .891, .0005);
  EXPECT_NEAR(stationary("fixed-groups", {.workers = n, .group_size = 8, .sync_period = 10}), .492,
              .0005);
  EXPECT_NEAR(stationary("push", {.workers = n, .peers = 2}), .562, .0005);
  EXPECT_NEAR(stationary("push", {.workers = n}), .891, .0005);
  EXPECT_NEAR(stationary("groups", {.workers = n, .group_size = 1, .sync_period = 10}), 4.43,
              .005);  // local SGD
  EXPECT_NEAR(stationary("ring-neighbours", {.workers = n}), 7.44, .005);
  // Fixed groups without sync drift apart for ever.
  EXPECT_EQ(stationary("fixed-groups", {.workers = n, .group_size = 8}), -1);
}

// Closed form without sync, for every pair with log2 S dividing log2 P.
TEST(Wagma, StationaryClosedForm) {
  for (const auto& [p, s] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {16, 4}, {16, 2}, {64, 8}, {64, 4}, {256, 16}, {256, 4}}) {
    double expected = 0;
    for (double power = s; power < p; power *= s) {
      expected += 1 / power - 1.0 / p;
    }
    EXPECT_NEAR(stationary("groups", {.workers = p, .group_size = s}), expected, 1e-12);
  }
}

}  // namespace
}  // namespace starling::topology
