#include "starling/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace starling {
namespace {

// The known answers published with the generator (Random123, kat_vectors, philox4x32 10).
TEST(Random, PhiloxKnownAnswers) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, SameStreamWhateverTheOrderOfDraws) {
  const Random random = Random(42).stream(3);
  std::vector<std::uint64_t> forward;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    forward.push_back(random.bits(i));
  }
  for (std::uint64_t i = 1000; i-- > 0;) {
    EXPECT_EQ(Random(42).stream(3).bits(i), forward[i]);
  }
  RandomSequence sequence(random);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(sequence.bits(), forward[i]);
  }
}

TEST(Random, SeedsAndStreamsDiffer) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (std::uint64_t stream = 0; stream < 100; ++stream) {
      seen.insert(Random(seed).stream(stream).bits(0));
      seen.insert(Random(seed).stream(stream).stream(stream).bits(0));
    }
  }
  EXPECT_EQ(seen.size(), 20000u);
}

TEST(Random, MomentsAndRange) {
  const Random random(7);
  const int n = 200000;
  double mean = 0;
  double normal_mean = 0;
  double normal_square = 0;
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    mean += u / n;
    const double z = random.stream(1).normal(i);
    normal_mean += z / n;
    normal_square += z * z / n;
  }
  EXPECT_NEAR(mean, 0.5, 0.004);
  EXPECT_NEAR(normal_mean, 0.0, 0.012);
  EXPECT_NEAR(normal_square, 1.0, 0.017);
}

TEST(Random, BelowCoversItsRangeEvenly) {
  const Random random(9);
  std::vector<int> count(13, 0);
  for (int i = 0; i < 130000; ++i) {
    ++count[random.below(13, i)];
  }
  EXPECT_GT(*std::min_element(count.begin(), count.end()), 9600);
  EXPECT_LT(*std::max_element(count.begin(), count.end()), 10400);
}

}  // namespace
}  // namespace starling
