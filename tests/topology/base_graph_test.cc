#include "starling/topology/base_graph.h"

#include <gtest/gtest.h>

#include <bit>

#include "starling/topology/factors.h"
#include "tests/topology/dense.h"

namespace starling::topology {
namespace {

TEST(BaseGraph, ExactForEveryNumberOfWorkersAndPeers) {
  for (std::uint32_t n = 1; n <= 64; ++n) {
    for (std::uint32_t peers = 1; peers <= 4; ++peers) {
      const View view = View::full(n);
      const auto schedule = make_schedule("base-k", {.workers = n, .peers = peers});
      const auto period = schedule->period(view);
      const auto exact = rounds_to_exact(*schedule, view, 0, *period);
      EXPECT_EQ(exact, n == 1 ? 0 : *period) << n << " workers, " << peers << " peers";
      // The paper's bound, 2·log_{k+1} n + 2.
      EXPECT_LE(static_cast<double>(*period), 2 * std::log(n) / std::log(peers + 1.0) + 2 + 1e-9)
          << n << " " << peers;
    }
  }
}

TEST(BaseGraph, ExactForRandomLargerNumbersAndForSurvivors) {
  std::mt19937 random(4);
  for (int i = 0; i < 6; ++i) {
    const auto n = static_cast<std::uint32_t>(65 + random() % 120);
    const std::uint32_t peers = 1 + random() % 5;
    const auto schedule = make_schedule("base-k", {.workers = n, .peers = peers});
    for (const View& view : {View::full(n), random_view(n, 0.3, random)}) {
      const auto period = schedule->period(view);
      EXPECT_EQ(rounds_to_exact(*schedule, view, 0, *period), *period) << n << " " << peers;
    }
  }
}

TEST(BaseGraph, NeverMorePeersThanAllowed) {
  for (std::uint32_t n = 1; n <= 80; ++n) {
    for (std::uint32_t peers = 1; peers <= 5; ++peers) {
      const BaseGraph graph(n, peers);
      for (std::uint32_t round = 0; round < graph.rounds(); ++round) {
        for (std::uint32_t worker = 0; worker < n; ++worker) {
          const auto move = graph.move(round, worker);
          ASSERT_LE(move.exchange ? move.size : move.size - 1, peers)
              << n << " " << peers << " round " << round << " worker " << worker;
        }
      }
    }
  }
}

// Powers of k + 1 need the hypercube's rounds only.
TEST(BaseGraph, Rounds) {
  EXPECT_EQ(BaseGraph(1, 1).rounds(), 0u);
  EXPECT_EQ(BaseGraph(8, 1).rounds(), 3u);
  EXPECT_EQ(BaseGraph(27, 2).rounds(), 3u);
  EXPECT_EQ(BaseGraph(12, 3).rounds(), 2u);
  EXPECT_EQ(BaseGraph(5, 4).rounds(), 1u);
  EXPECT_EQ(BaseGraph(5, 1).rounds(), 5u);  // 4 + 1: two, one exchange, two
  EXPECT_EQ(BaseGraph(6, 1).rounds(), 4u);  // twice 3 = 2 + 1 (three rounds), then across
  EXPECT_EQ(BaseGraph(3, 1).rounds(), 3u);
}

// Five workers, one peer: {0 … 3} and {4}; the exchange hands 4/5 over.
TEST(BaseGraph, ExchangeWeightByHand) {
  const View view = View::full(5);
  const auto schedule = make_schedule("base-k", {.workers = 5});
  const Row hub = schedule->row(Step{2}, Rank{0}, view);
  const Row leaf = schedule->row(Step{2}, Rank{4}, view);
  ASSERT_TRUE(std::holds_alternative<Neighbours>(hub));
  EXPECT_EQ(std::get<Neighbours>(hub).in, (std::vector<Edge>{{Rank{4}, 0.8}}));
  EXPECT_EQ(std::get<Neighbours>(leaf).out, (std::vector<Edge>{{Rank{0}, 0.8}}));
  EXPECT_NEAR(std::get<Neighbours>(leaf).self_weight, 0.2, 1e-16);
}

}  // namespace
}  // namespace starling::topology
