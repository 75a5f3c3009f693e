// Which all-reduce Auto stands for, and the closed forms at the sizes where they can be written
// down by hand. That the protocols keep to them is tested with the simulator.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "starling/comm/all_reduce.h"
#include "starling/comm/cost.h"
#include "starling/comm/letter.h"

namespace starling::comm {
namespace {

constexpr Link kLink{.latency = 1e-5, .bandwidth = 1e9};

TEST(Choose, WhatFitsIntoAControlMessageGoesByTheFewestHops) {
  for (std::size_t members : {1u, 2u, 3u, 16u, 1000u}) {
    EXPECT_EQ(choose(members, 4), AllReduce::Doubling);
    EXPECT_EQ(choose(members, kSmall), AllReduce::Doubling);
    EXPECT_NE(choose(members, kSmall + 4), AllReduce::Doubling);
  }
}

TEST(Choose, LargeBuffersGoDirectlyUnlessTheirSegmentsAreShort) {
  EXPECT_EQ(choose(2, 100'000), AllReduce::Direct);
  EXPECT_EQ(choose(16, 5000), AllReduce::Direct);
  EXPECT_EQ(choose(17, 278528), AllReduce::Direct);
  EXPECT_EQ(choose(17, 278528 - 4), AllReduce::Halving);
  EXPECT_EQ(choose(1024, 100'000), AllReduce::Halving);
  EXPECT_EQ(choose(1024, 100'000'000), AllReduce::Direct);
}

TEST(Choose, WhereNodesHoldSeveralMembersTheySumFirst) {
  EXPECT_EQ(choose(8, 5000, 1, Nodes::Shared), AllReduce::Halving);
  EXPECT_EQ(choose(8, 100'000'000, 1, Nodes::Shared), AllReduce::Halving);
  EXPECT_EQ(choose(8, kSmall, 1, Nodes::Shared), AllReduce::Doubling);
  EXPECT_EQ(choose(3, 100'000'000, 2, Nodes::Shared), AllReduce::Gather);
}

TEST(Choose, NeverStandsForItselfOrTheRival) {
  for (std::size_t members : {1u, 2u, 3u, 5u, 8u, 13u, 16u, 17u, 64u, 100u}) {
    for (std::size_t bytes = 4; bytes < 1'000'000'000; bytes *= 3) {
      const AllReduce algorithm = choose(members, bytes);
      EXPECT_TRUE(algorithm != AllReduce::Auto && algorithm != AllReduce::Ring);
      const Cost named = all_reduce_cost(algorithm, members, static_cast<double>(bytes), kLink);
      const Cost automatic =
          all_reduce_cost(AllReduce::Auto, members, static_cast<double>(bytes), kLink);
      EXPECT_EQ(named.seconds, automatic.seconds);
      EXPECT_EQ(named.bytes, automatic.bytes);
    }
  }
}

TEST(Choose, EveryAlgorithmHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (AllReduce a : {AllReduce::Auto, AllReduce::Doubling, AllReduce::Direct, AllReduce::Halving,
                      AllReduce::Shared, AllReduce::Ring, AllReduce::Gather}) {
    names.insert(name_of(a));
  }
  EXPECT_EQ(names.size(), 7u);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Cost, OneMemberCostsNothing) {
  for (AllReduce a : {AllReduce::Auto, AllReduce::Doubling, AllReduce::Direct, AllReduce::Halving,
                      AllReduce::Ring}) {
    EXPECT_EQ(all_reduce_cost(a, 1, 1e6, kLink).seconds, 0);
    EXPECT_EQ(all_reduce_cost(a, 1, 1e6, kLink).bytes, 0);
  }
  EXPECT_EQ(broadcast_cost(1, 1e6, 0, kLink).seconds, 0);
  EXPECT_EQ(barrier_cost(1, kLink).seconds, 0);
  EXPECT_EQ(exchange_cost(0, 1e6, kLink).seconds, 0);
}

// B = 6.4 MB cuts evenly by 64 bytes among 8: every message is bulk, without a header.
TEST(Cost, EightMembersAsInTheBook) {
  constexpr double kBytes = 6.4e6;
  constexpr double kAll = kBytes / 1e9;
  constexpr double kTiny = 1e-12;
  const Cost doubling = all_reduce_cost(AllReduce::Doubling, 8, kBytes, kLink);
  EXPECT_NEAR(doubling.seconds, 3 * (1e-5 + kAll), kTiny);
  EXPECT_NEAR(doubling.bytes, 3 * kBytes, 1e-3);
  const Cost direct = all_reduce_cost(AllReduce::Direct, 8, kBytes, kLink);
  EXPECT_NEAR(direct.seconds, 2 * (1e-5 + 7 * kAll / 8), kTiny);
  EXPECT_NEAR(direct.bytes, 2 * 7 * kBytes / 8, 1e-3);
  const Cost halving = all_reduce_cost(AllReduce::Halving, 8, kBytes, kLink);
  EXPECT_NEAR(halving.seconds, 2 * (3 * 1e-5 + 7 * kAll / 8), kTiny);
  EXPECT_NEAR(halving.bytes, 2 * 7 * kBytes / 8, 1e-3);
  const Cost ring = all_reduce_cost(AllReduce::Ring, 8, kBytes, kLink);
  EXPECT_NEAR(ring.seconds, 2 * 7 * (1e-5 + kAll / 8), kTiny);
  EXPECT_NEAR(ring.bytes, 2 * 7 * kBytes / 8, 1e-3);
  const Cost gather = all_reduce_cost(AllReduce::Gather, 8, kBytes, kLink);
  EXPECT_NEAR(gather.seconds, 1e-5 + 7 * kAll, kTiny);
  EXPECT_NEAR(gather.bytes, 7 * kBytes, 1e-3);
  const Cost exchange = exchange_cost(2, kBytes, kLink);
  EXPECT_NEAR(exchange.seconds, 1e-5 + 2 * kAll, kTiny);
  EXPECT_NEAR(exchange.bytes, 2 * kBytes, 1e-3);
  EXPECT_NEAR(barrier_cost(8, kLink).seconds, 3 * (1e-5 + sizeof(Header) / 1e9), kTiny);
  EXPECT_NEAR(broadcast_cost(8, 1000, 0, kLink).seconds, 3 * (1e-5 + (1000 + sizeof(Header)) / 1e9),
              kTiny);
}

// Contributions of half the bytes; results of all of them.
TEST(Cost, EightMembersWithBf16) {
  constexpr double kBytes = 6.4e6;
  constexpr double kAll = kBytes / 1e9;
  constexpr double kTiny = 1e-12;
  const Cost direct = all_reduce_cost(AllReduce::Direct, 8, kBytes, kLink, 2);
  EXPECT_NEAR(direct.seconds, 2 * 1e-5 + 1.5 * 7 * kAll / 8, kTiny);
  EXPECT_NEAR(direct.bytes, 1.5 * 7 * kBytes / 8, 1e-3);
  const Cost gather = all_reduce_cost(AllReduce::Gather, 8, kBytes, kLink, 2);
  EXPECT_NEAR(gather.seconds, 1e-5 + 7 * kAll / 2, kTiny);
  EXPECT_NEAR(gather.bytes, 7 * kBytes / 2, 1e-3);
  const Cost halving = all_reduce_cost(AllReduce::Halving, 8, kBytes, kLink, 2);
  EXPECT_NEAR(halving.bytes, 2 * 7 * kBytes / 8, 1e-3);
  const double many = all_reduce_cost(AllReduce::Direct, 1000, 6.4e9, kLink, 2).bytes;
  EXPECT_NEAR(many, 1.5 * 999.0 / 1000 * 6.4e9, 1);
}

TEST(Cost, AShortChunkLetsABroadcastFlow) {
  const double whole = broadcast_cost(8, 6.4e6, 0, kLink).seconds;
  const double chunked = broadcast_cost(8, 6.4e6, 65536, kLink).seconds;
  EXPECT_LT(chunked, whole);
  EXPECT_GT(chunked, 6.4e6 / kLink.bandwidth) << "the root has to send it all";
  EXPECT_EQ(broadcast_cost(8, 6.4e6, 0, kLink).bytes, 6.4e6);
}

}  // namespace
}  // namespace starling::comm
