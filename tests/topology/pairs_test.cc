#include <gtest/gtest.h>

#include <map>
#include <set>

#include "starling/base/permutation.h"
#include "tests/topology/dense.h"

namespace starling::topology {
namespace {

TEST(Permutation, IsOneAndKnowsItsInverse) {
  for (const std::uint32_t size : {1u, 2u, 3u, 5u, 8u, 63u, 64u, 65u, 1000u, 4096u}) {
    const Permutation order(Random(7).stream(size), size);
    std::set<std::uint32_t> images;
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t image = order.image(i);
      ASSERT_LT(image, size);
      ASSERT_EQ(order.origin(image), i);
      images.insert(image);
    }
    EXPECT_EQ(images.size(), size);
  }
}

// Every partner is as likely as every other, at every size: within 5 standard deviations.
TEST(Pairs, EveryPairIsAsLikely) {
  for (const std::uint32_t n : {3u, 4u, 5u, 6u, 7u, 8u, 12u, 33u}) {
    const auto schedule = make_schedule("pairs", {.workers = n, .seed = 3});
    const View view = View::full(n);
    const int steps = 200000;
    std::map<std::uint32_t, int> partner;
    for (int t = 0; t < steps; ++t) {
      const auto group = std::get<Group>(schedule->row(Step{t}, Rank{1}, view));
      ++partner[group.members.size() == 1     ? 1
                : group.members[0] == Rank{1} ? group.members[1].value
                                              : group.members[0].value];
    }
    const double p = 1.0 / (n - 1 + n % 2);  // odd: to rest is as likely as any partner
    const double sigma = std::sqrt(p * (1 - p) / steps);
    for (std::uint32_t other = 0; other < n; ++other) {
      const double expected = other == 1 && n % 2 == 0 ? 0 : p;
      EXPECT_NEAR(partner[other] / static_cast<double>(steps), expected, 5 * sigma + 1e-9)
          << n << " workers, partner " << other;
    }
  }
}

TEST(Pairs, SeedsAndStepsDiffer) {
  const View view = View::full(100);
  std::set<std::vector<std::uint32_t>> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto schedule = make_schedule("pairs", {.workers = 100, .seed = seed});
    for (std::int64_t t = 0; t < 10; ++t) {
      std::vector<std::uint32_t> partners;
      for (std::uint32_t r = 0; r < 100; ++r) {
        partners.push_back(
            std::get<Group>(schedule->row(Step{t}, Rank{r}, view)).members.front().value);
      }
      seen.insert(partners);
    }
  }
  EXPECT_EQ(seen.size(), 100u);
}

// The factor that the schedule promises is what its matchings do on average.
TEST(Pairs, ExpectedFactor) {
  for (const std::uint32_t n : {5u, 8u, 16u}) {
    const View view = View::full(n);
    double left = 0;
    const int steps = 4000;
    const auto schedule = make_schedule("pairs", {.workers = n, .seed = 11});
    for (int t = 0; t < steps; ++t) {
      left += deviation_left(dense(*schedule, Step{t}, view)) / steps;
    }
    EXPECT_NEAR(left, *schedule->expected_factor(view), 1e-9) << n;  // the same for any matching
    double twice = 0;
    for (int t = 0; t < steps; ++t) {
      twice += deviation_left(multiply(dense(*schedule, Step{2 * t + 1}, view),
                                       dense(*schedule, Step{2 * t}, view))) /
               steps;
    }
    EXPECT_NEAR(twice, left * left, 0.02 * twice) << n;
  }
}

}  // namespace
}  // namespace starling::topology
