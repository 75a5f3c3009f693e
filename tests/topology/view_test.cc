#include "starling/topology/view.h"

#include <gtest/gtest.h>

#include "starling/base/error.h"
#include "starling/topology/analysis.h"

namespace starling::topology {
namespace {

TEST(View, PositionsAndSlots) {
  const View view(6, {{1}, {2}, {5}});
  EXPECT_EQ(view.workers(), 6u);
  EXPECT_EQ(view.count(), 3u);
  EXPECT_FALSE(view.alive(Rank{0}));
  EXPECT_TRUE(view.alive(Rank{5}));
  EXPECT_FALSE(view.alive(Rank{6}));
  EXPECT_EQ(view.position(Rank{5}), 2u);
  EXPECT_EQ(view.at(1), Rank{2});
  EXPECT_EQ(view.below(3), 2u);
  EXPECT_EQ(view.below(6), 3u);
  EXPECT_EQ(view.slots(), 6u);
  EXPECT_EQ(view.slot(Rank{5}), 5u);
  EXPECT_FALSE(view.filled(3));
  const View packed = view.packed();
  EXPECT_EQ(packed.slots(), 3u);
  EXPECT_EQ(packed.slot(Rank{5}), 2u);
  EXPECT_EQ(packed.in_slot(2), Rank{5});
  EXPECT_TRUE(packed.filled(1));
}

TEST(View, RefusesWhatIsNotASetOfRanks) {
  EXPECT_THROW(View::full(0), Error);
  EXPECT_THROW(View(4, {}), Error);
  EXPECT_THROW(View(4, {{1}, {1}}), Error);
  EXPECT_THROW(View(4, {{2}, {1}}), Error);
  EXPECT_THROW(View(4, {{4}}), Error);
}

// Holes can cut survivors apart; the packed view brings them together again.
TEST(View, PackingReconnectsWhatHolesCutApart) {
  const auto groups = make_schedule("groups", {.workers = 4, .group_size = 2});
  const View view(4, {{0}, {3}});
  EXPECT_FALSE(is_connected(*groups, view));
  EXPECT_TRUE(is_connected(*groups, view.packed()));
  EXPECT_EQ(std::get<Group>(groups->row(Step{0}, Rank{3}, view.packed())),
            uniform_group({{0}, {3}}));
}

}  // namespace
}  // namespace starling::topology
