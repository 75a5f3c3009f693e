// What passes the cards of nodes, against the table of volumes per schedule; latencies by hand.
#include <gtest/gtest.h>

#include "starling/model/link_costs.h"
#include "starling/topology/view.h"
#include "tests/model/case.h"

namespace starling::model {
namespace {

constexpr std::uint64_t kBytes = 1'000'000'000;

// Seconds of the exchanges of a step, one worker each, at 1 model per second and card.
std::vector<double> seconds_of(const std::string& name, std::int64_t step, const Links& links,
                               Volume volume = Volume::Ring) {
  const auto schedule = topology::make_schedule(name, {.workers = 16, .per_node = 4});
  const topology::View view = topology::View::full(16);
  std::vector<std::vector<Rank>> members;
  std::vector<Exchange> active;
  for (const Rank r : view.live()) {
    const topology::Row row = schedule->row(Step{step}, r, view);
    if (const auto* group = std::get_if<topology::Group>(&row)) {
      if (group->members.front() == r) {
        members.emplace_back(group->members.begin(), group->members.end());
        active.push_back({.closed = true});
      }
    } else {
      members.push_back({r});
      for (const topology::Edge& edge : std::get<topology::Neighbours>(row).in) {
        members.back().push_back(edge.peer);
      }
      active.push_back({.closed = false});
    }
  }
  for (std::size_t i = 0; i < active.size(); ++i) {
    active[i].members = members[i];
  }
  std::vector<double> out(active.size());
  const LinkCosts costs(links, {Bytes{kBytes}}, volume);
  costs.seconds(0, Step{step}, active, out);
  return out;
}

const Links kCards{.bandwidth = 1e9, .local_bandwidth = 1e15, .per_node = 4};

TEST(LinkCosts, CardsCarryWhatTheSchedulesSend) {
  EXPECT_NEAR(seconds_of("complete", 0, kCards)[0], 1.875, 1e-6);
  // One-peer ring: the two boundary workers of every node, in every second step.
  EXPECT_NEAR(seconds_of("ring", 0, kCards)[0], 0, 1e-3);
  const std::vector<double> ring = seconds_of("ring", 1, kCards);
  EXPECT_NEAR(*std::max_element(ring.begin(), ring.end()), 2, 1e-6);
  // One-peer exponential: all four workers of a node at once.
  EXPECT_NEAR(seconds_of("exponential", 1, kCards)[0], 0, 1e-3);
  EXPECT_NEAR(seconds_of("exponential", 2, kCards)[0], 4, 1e-6);
  // Alternating exponential ring, step 0: {0-3} {4-7} {8-15}.
  const std::vector<double> aer = seconds_of("aer", 0, kCards);
  ASSERT_EQ(aer.size(), 3u);
  EXPECT_NEAR(aer[0], 0, 1e-3);
  EXPECT_NEAR(aer[1], 0, 1e-3);
  EXPECT_NEAR(aer[2], 1.75, 1e-6);
}

TEST(LinkCosts, DirectExchangesPassWhatAllMembersOfANodeSend) {
  // 4 of 16 members in each node: 2 · 4 · 12 / 16 models.
  EXPECT_NEAR(seconds_of("complete", 0, kCards, Volume::Direct)[0], 6, 1e-6);
  EXPECT_NEAR(seconds_of("exponential", 2, kCards, Volume::Direct)[0], 4, 1e-6);
  // Summing inside the nodes comes before, 1.5 models at the local bandwidth.
  EXPECT_NEAR(seconds_of("complete", 0, kCards, Volume::Nodes)[0], 1.5 + 1.5e-6, 1e-9);
  EXPECT_NEAR(seconds_of("exponential", 2, kCards, Volume::Nodes)[0], 4, 1e-6);
}

TEST(LinkCosts, NeighboursShareCardsInBothDirections) {
  // Both neighbours on the ring: of each node one worker takes from the left, one from the right,
  // so that two models come in; those inside wait for nothing but their own links.
  const std::vector<double> ring = seconds_of("ring-neighbours", 0, kCards);
  ASSERT_EQ(ring.size(), 16u);
  EXPECT_NEAR(ring[4], 2, 1e-6);
  EXPECT_NEAR(ring[5], 0, 1e-3);
}

TEST(LinkCosts, LatenciesAndLocalLinks) {
  const Links links{.latency = 0.01,
                    .bandwidth = 1e15,
                    .local_latency = 0.001,
                    .local_bandwidth = 2e9,
                    .per_node = 4};
  // A pair inside a node: 2 latencies, one model.
  EXPECT_NEAR(seconds_of("exponential", 0, links)[0], 0.002 + 0.5, 1e-9);
  EXPECT_NEAR(seconds_of("exponential", 2, links)[0], 0.02 + 0.5, 1e-6);
  EXPECT_NEAR(seconds_of("complete", 0, links)[0], 0.3 + 1.875 / 2, 1e-6);
  EXPECT_NEAR(seconds_of("complete", 0, links, Volume::Direct)[0], 0.02 + 1.875 / 2, 1e-6);
}

TEST(LinkCosts, RefusesImpossibleLinks) {
  EXPECT_THROW(LinkCosts({.bandwidth = 0}, {Bytes{1}}), std::exception);
  EXPECT_THROW(LinkCosts({.latency = -1}, {Bytes{1}}), std::exception);
  EXPECT_THROW(LinkCosts({.per_node = 0}, {Bytes{1}}), std::exception);
}

TEST(TableCosts, TellsPhasesAndPlacesApart) {
  const TableCosts costs(
      8, 4, {{.inside = {1, 2}, .across = {3, 4}}, {.inside = {5, 6}, .across = {7, 8}}}, {9, 10});
  const std::vector<Rank> inside = {Rank{0}, Rank{3}};
  const std::vector<Rank> across = {Rank{3}, Rank{4}};
  const std::vector<Rank> all = {Rank{0}, Rank{1}, Rank{2}, Rank{3},
                                 Rank{4}, Rank{5}, Rank{6}, Rank{7}};
  const std::vector<Rank> one = {Rank{2}};
  const Exchange active[] = {{inside}, {across}, {all}, {one}};
  std::vector<double> out(4);
  costs.seconds(0, Step{0}, active, out);
  EXPECT_EQ(out, (std::vector<double>{1, 3, 9, 0}));
  costs.seconds(1, Step{3}, active, out);
  EXPECT_EQ(out, (std::vector<double>{6, 8, 10, 0}));
  EXPECT_THROW(TableCosts(8, 4, {{.inside = {1}, .across = {1, 2}}}, {1}), std::exception);
  EXPECT_THROW(TableCosts(8, 4, {}, {1}), std::exception);
  EXPECT_THROW(TableCosts(8, 4, {{.inside = {-1}, .across = {1}}}, {1}), std::exception);
}

}  // namespace
}  // namespace starling::model
