// The topologies, mixing facts and acceptance tests 1 to 4 of the decentralized Adam specification
// (sections 5.1 to 5.3 and 2.8), 16 workers on 4 nodes of 4 unless said otherwise.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>

#include "starling/topology/analysis.h"
#include "tests/topology/dense.h"

namespace starling::topology {
namespace {

using Ranks = std::vector<std::uint32_t>;
using Partition = std::vector<Ranks>;

std::unique_ptr<Schedule> make(const char* name, std::uint32_t n = 16, std::uint32_t per_node = 4) {
  return make_schedule(name, {.workers = n, .per_node = per_node});
}

Partition partition(const Schedule& schedule, std::int64_t t, std::uint32_t n) {
  Partition all;
  const View view = View::full(n);
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    const auto group = std::get<Group>(schedule.row(Step{t}, Rank{rank}, view));
    EXPECT_DOUBLE_EQ(group.self_weight, 1.0 / static_cast<double>(group.members.size()));
    if (group.members.front() == Rank{rank}) {
      all.emplace_back();
      for (const Rank member : group.members) {
        all.back().push_back(member.value);
      }
    }
  }
  return all;
}

Ranks range(std::uint32_t first, std::uint32_t last) {
  Ranks ranks;
  for (std::uint32_t r = first; r <= last; ++r) {
    ranks.push_back(r);
  }
  return ranks;
}

// Test 1: the lists of section 5.1.
TEST(DecentralizedAdam, EdgeLists) {
  EXPECT_EQ(partition(*make("complete"), 0, 16), (Partition{range(0, 15)}));
  const auto ring = make("ring");
  EXPECT_EQ(partition(*ring, 0, 16),
            (Partition{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(partition(*ring, 1, 16),
            (Partition{{0, 15}, {1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}, {13, 14}}));
  const auto exponential = make("exponential");
  const std::vector<Partition> phases = {
      {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}},
      {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}},
      {{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}},
      {{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}};
  for (std::int64_t t = 0; t < 8; ++t) {
    EXPECT_EQ(partition(*exponential, t, 16), phases[t % 4]);
  }
  const auto aer = make("aer");
  EXPECT_EQ(partition(*aer, 0, 16), (Partition{range(0, 3), range(4, 7), range(8, 15)}));
  EXPECT_EQ(partition(*aer, 1, 16), (Partition{range(0, 7), range(8, 11), range(12, 15)}));
  EXPECT_EQ(partition(*aer, 2, 16),
            (Partition{range(0, 3), {4, 5, 6, 7, 12, 13, 14, 15}, range(8, 11)}));
  EXPECT_EQ(partition(*aer, 3, 16),
            (Partition{{0, 1, 2, 3, 8, 9, 10, 11}, range(4, 7), range(12, 15)}));
  EXPECT_EQ(partition(*aer, 7, 16), partition(*aer, 3, 16));
}

// Section 5.2: I = inside the node, J = joint.
std::string pattern(const Schedule& aer, std::uint32_t node, std::uint32_t n) {
  std::string text;
  const View view = View::full(n);
  for (std::int64_t t = 0; t < *aer.period(view); ++t) {
    const auto group = std::get<Group>(aer.row(Step{t}, Rank{node * 4}, view));
    text += group.members.size() == 4 ? 'I' : 'J';
  }
  return text;
}

TEST(DecentralizedAdam, AerPatterns) {
  const auto four = make("aer");
  EXPECT_EQ(pattern(*four, 0, 16), "IJIJ");
  EXPECT_EQ(pattern(*four, 1, 16), "IJJI");
  EXPECT_EQ(pattern(*four, 2, 16), "JIIJ");
  EXPECT_EQ(pattern(*four, 3, 16), "JIJI");
  const auto eight = make("aer", 32);
  for (const std::uint32_t half : {0u, 4u}) {
    EXPECT_EQ(pattern(*eight, half + 0, 32), "IJIJIJ");
    EXPECT_EQ(pattern(*eight, half + 1, 32), "IJJIJI");
    EXPECT_EQ(pattern(*eight, half + 2, 32), "JIIJIJ");
    EXPECT_EQ(pattern(*eight, half + 3, 32), "JIJIJI");
  }
  const auto two = make("aer", 8);
  EXPECT_EQ(partition(*two, 0, 8), (Partition{range(0, 3), range(4, 7)}));
  EXPECT_EQ(partition(*two, 1, 8), (Partition{range(0, 7)}));
}

// In a phase of a general number of nodes every node is joint at most once, and over the two phases
// of an exponent all of them (but one of an odd number) are.
TEST(DecentralizedAdam, AerPairsEveryNodeForAnyNumberOfNodes) {
  for (std::uint32_t nodes = 2; nodes <= 40; ++nodes) {
    const auto aer = make("aer", nodes * 2, 2);
    const View view = View::full(nodes * 2);
    const auto period = *aer->period(view);
    EXPECT_EQ(period, 2 * std::bit_width(nodes - 1));
    for (std::int64_t t = 0; t < period; t += 2) {
      std::uint32_t joint = 0;
      for (std::uint32_t node = 0; node < nodes; ++node) {
        std::uint32_t times = 0;
        for (const std::int64_t phase : {t, t + 1}) {
          const auto group = std::get<Group>(aer->row(Step{phase}, Rank{2 * node}, view));
          times += group.members.size() == 4 ? 1 : 0;
        }
        EXPECT_LE(times, 1u);
        joint += times;
      }
      EXPECT_EQ(joint, nodes / 2 * 2) << nodes << " nodes, step " << t;
    }
    EXPECT_TRUE(is_connected(*aer, view)) << nodes;
  }
}

TEST(DecentralizedAdam, AerSkipsDeadNodesAndKeepsSurvivorsTogether) {
  // Nodes 1 and 2 of four are gone, node 3 has one worker left: a pair of nodes remains.
  const View view(16, {{0}, {1}, {2}, {3}, {14}});
  const auto aer = make("aer");
  EXPECT_EQ(aer->period(view), 2);
  EXPECT_EQ(std::get<Group>(aer->row(Step{0}, Rank{14}, view)), uniform_group({{14}}));
  EXPECT_EQ(std::get<Group>(aer->row(Step{1}, Rank{14}, view)),
            uniform_group({{0}, {1}, {2}, {3}, {14}}));
  EXPECT_TRUE(is_connected(*aer, view));
}

// Test 1: W symmetric, W² = W, every rank in one group (dense() asserts the last).
TEST(DecentralizedAdam, ShippedMatricesAreProjections) {
  for (const char* name : {"complete", "ring", "exponential", "aer"}) {
    for (const auto& [n, per_node] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
             {8, 4}, {16, 4}, {32, 4}, {32, 8}, {64, 8}}) {
      const auto schedule = make(name, n, per_node);
      for (std::int64_t t = 0; t < *schedule->period(View::full(n)); ++t) {
        const Matrix w = dense(*schedule, Step{t}, View::full(n));
        EXPECT_EQ(distance(w, transposed(w)), 0);
        EXPECT_LT(distance(multiply(w, w), w), 1e-15 * n);
      }
    }
  }
}

// Test 2: rounds to exact consensus from every phase.
TEST(DecentralizedAdam, ExactRoundCounts) {
  for (const auto& [n, per_node] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {8, 4}, {16, 4}, {32, 4}, {32, 8}, {64, 8}}) {
    const View view = View::full(n);
    EXPECT_EQ(rounds_to_exact(*make("complete", n), view, 0, 1), 1);
    const std::int64_t log = std::bit_width(n) - 1;
    for (std::int64_t first = 0; first < log; ++first) {
      EXPECT_EQ(rounds_to_exact(*make("exponential", n), view, first, log), log);
    }
    const auto aer = make("aer", n, per_node);
    const std::int64_t rounds = 2 * (std::bit_width(n / per_node) - 1);
    for (std::int64_t first = 0; first < rounds; ++first) {
      const std::int64_t odd = n / per_node == 2 ? 1 : rounds + 1;
      EXPECT_EQ(rounds_to_exact(*aer, view, first, rounds + 1), first % 2 == 0 ? rounds : odd)
          << n << "/" << per_node << " from " << first;
    }
    EXPECT_EQ(analyse(*aer, view).exact_after, rounds);
    EXPECT_EQ(analyse(*make("ring", n), view).exact_after, std::nullopt);
  }
  EXPECT_EQ(analyse(*make("ring", 2), View::full(2)).exact_after, 1);
  EXPECT_EQ(analyse(*make("ring", 4), View::full(4)).exact_after, 2);
}

// Test 2: norm and factor of the ring.
TEST(DecentralizedAdam, RingNormAndFactor) {
  for (const auto& [n, factor] : std::vector<std::pair<std::uint32_t, double>>{
           {8, .5}, {16, .853553}, {32, .961940}, {64, .990393}}) {
    const Analysis a = analyse(*make("ring", n), View::full(n));
    const double c = std::cos(2 * std::numbers::pi / n);
    EXPECT_NEAR(*a.norm, c, 1e-12);
    EXPECT_NEAR(*a.factor, c * c, 1e-12);
    EXPECT_NEAR(*a.factor, factor, 5e-7);
  }
}

// Test 2: the table of section 5.3, in double by the tests' own products and by the analysis.
void expect_deviation(const Schedule& schedule, std::int64_t first,
                      const std::vector<double>& expected) {
  const View view = View::full(16);
  Matrix product = identity(16);
  for (std::size_t r = 0; r < expected.size(); ++r) {
    product = multiply(dense(schedule, Step{first + static_cast<std::int64_t>(r)}, view), product);
    EXPECT_NEAR(deviation_left(product), expected[r], 5.1e-7) << "round " << r + 1;
    if (first == 0) {
      const Analysis a = analyse(schedule, view, {.steps = 8});
      EXPECT_NEAR(a.deviation[r + 1], deviation_left(product), 1e-12);
    }
  }
}

TEST(DecentralizedAdam, DeviationTable) {
  expect_deviation(*make("ring"), 0,
                   {.466667, .2, .133333, .1, .079167, .064583, .053646, .045052});
  expect_deviation(*make("exponential"), 0, {.466667, .2, .066667, 0});
  expect_deviation(*make("aer"), 0, {.133333, .066667, .033333, 0});
  expect_deviation(*make("aer"), 1, {.133333, .083333, .033333, .016667, 0});
}

// Test 3, exactly: after the noise is added, 1 − 1/N more than after mixing.
double after_noise(const Analysis& a) { return a.stationary.value() + 1 - 1.0 / a.workers; }

TEST(DecentralizedAdam, StationaryDeviation) {
  const auto of = [](const char* name) { return analyse(*make(name), View::full(16)); };
  EXPECT_NEAR(after_noise(of("complete")), .9375, 1e-12);
  EXPECT_NEAR(after_noise(of("aer")), 1.171875, 1e-12);
  EXPECT_NEAR(after_noise(of("exponential")), 1.625, 1e-12);
  EXPECT_NEAR(after_noise(of("ring")), 2.25, 1e-12);
  const Analysis aer = of("aer");
  ASSERT_EQ(aer.stationary_by_step.size(), 4u);
  std::vector<double> alternating;
  for (const double value : aer.stationary_by_step) {
    alternating.push_back(value + .9375);
  }
  for (std::size_t t = 0; t < 4; ++t) {
    EXPECT_NEAR(alternating[t], t % 2 == 0 ? 1.1875 : 1.15625, 1e-12) << t;
  }
  for (const std::uint32_t n : {2u, 8u, 32u, 128u}) {
    const Analysis a = analyse(*make("exponential", n), View::full(n));
    EXPECT_NEAR(after_noise(a), 2 * (1 - 1.0 / n) - std::log2(n) / n, 1e-12);
  }
}

// Test 3, as a noisy run of 10⁵ rounds through the rows.
TEST(DecentralizedAdam, StationaryDeviationOfARun) {
  for (const auto& [name, expected] : std::vector<std::pair<const char*, double>>{
           {"complete", .9375}, {"aer", 1.171875}, {"exponential", 1.625}, {"ring", 2.25}}) {
    const auto schedule = make(name);
    const View view = View::full(16);
    std::vector<Matrix> steps;
    for (std::int64_t t = 0; t < *schedule->period(view); ++t) {
      steps.push_back(dense(*schedule, Step{t}, view));
    }
    std::mt19937_64 random(6);
    std::normal_distribution<double> normal;
    std::vector<double> x(16, 0.0);
    std::vector<double> next(16);
    double sum = 0;
    double drift = 0;
    const int rounds = 100000;
    for (int t = 0; t < rounds; ++t) {
      const Matrix& w = steps[t % steps.size()];
      double before = 0;
      double after = 0;
      double mean = 0;
      for (std::size_t i = 0; i < 16; ++i) {
        next[i] = 0;
        for (std::size_t j = 0; j < 16; ++j) {
          next[i] += w[i][j] * x[j];
        }
        before += x[i];
        after += next[i];
      }
      drift = std::max(drift, std::abs(before - after) / (16 * (1 + std::abs(before))));
      for (std::size_t i = 0; i < 16; ++i) {
        x[i] = next[i] + normal(random);
        mean += x[i] / 16;
      }
      for (std::size_t i = 0; i < 16; ++i) {
        x[i] -= mean;  // the mean is free to wander; only deviations count
        sum += x[i] * x[i] / 16 / rounds;
      }
    }
    EXPECT_NEAR(sum, expected, .01 * expected) << name;
    EXPECT_LE(drift, 16 * 2.3e-16) << name;
  }
}

// Test 4: a self-weight other than 1/m: w·x_i + (1 − w)/(m − 1) · the others.
TEST(DecentralizedAdam, NonUniformSelfWeight) {
  const Group group{{{0}, {1}, {2}, {3}, {4}}, 0.6};
  EXPECT_FALSE(group.is_uniform());
  EXPECT_DOUBLE_EQ(group.other_weight(), 0.1);
  EXPECT_TRUE(uniform_group({{0}, {1}, {2}}).is_uniform());
  EXPECT_DOUBLE_EQ(uniform_group({{0}, {1}, {2}}).other_weight(), 1.0 / 3);
}

// Section 2.8: bytes through a node's card, in models, per direction.
TEST(DecentralizedAdam, NetworkBytesPerNode) {
  const auto bytes = [](const char* name) {
    return analyse(*make(name), View::full(16), {.per_node = 4, .model = {1'000'000}}).traffic;
  };
  EXPECT_NEAR(bytes("complete").node_mean, 1.875e6, 1e-3);
  EXPECT_NEAR(bytes("ring").node_mean, 1.0e6, 1e-3);
  EXPECT_NEAR(bytes("ring").node_peak, 2.0e6, 1e-3);
  EXPECT_NEAR(bytes("exponential").node_mean, 2.0e6, 1e-3);
  EXPECT_NEAR(bytes("exponential").node_peak, 4.0e6, 1e-3);
  EXPECT_NEAR(bytes("aer").node_mean, 0.875e6, 1e-3);
  EXPECT_NEAR(bytes("aer").node_peak, 1.75e6, 1e-3);
  EXPECT_NEAR(bytes("ring").link_peak, 1.0e6, 1e-3);
}

}  // namespace
}  // namespace starling::topology
