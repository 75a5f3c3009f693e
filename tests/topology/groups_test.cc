// `groups` for any number of workers: exact where factors allow, grids with holes elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "starling/topology/factors.h"
#include "starling/topology/grid.h"
#include "tests/topology/dense.h"

namespace starling::topology {
namespace {

TEST(Factors, FlattestAndFewest) {
  using List = std::vector<std::uint32_t>;
  EXPECT_EQ(flattest_factors(36, 2, 18), (List{6, 6}));
  EXPECT_EQ(flattest_factors(60, 3, 6), (List{5, 4, 3}));
  EXPECT_EQ(flattest_factors(12, 2, 4), (List{4, 3}));
  EXPECT_EQ(flattest_factors(14, 2, 6), std::nullopt);
  EXPECT_EQ(fewest_factors(1, 2), List{});
  EXPECT_EQ(fewest_factors(24, 4), (List{4, 3, 2}));
  EXPECT_EQ(fewest_factors(22, 10), std::nullopt);
  EXPECT_EQ(ceil_log(64, 8), 2u);
  EXPECT_EQ(ceil_log(65, 8), 3u);
  EXPECT_EQ(ceil_log(1, 2), 0u);
}

// Every place has one cell; the conversions are each other's inverse.
TEST(Grid, PlacesAndCells) {
  for (std::uint32_t limit = 2; limit <= 9; ++limit) {
    for (std::uint32_t size = limit + 1; size <= 120; ++size) {
      const Grid grid = Grid::of(size, limit);
      ASSERT_LT(grid.holes, grid.rows);
      std::vector<std::uint32_t> in_column(grid.columns, 0);
      for (std::uint32_t place = 0; place < size; ++place) {
        const Grid::Cell cell = grid.cell(place);
        ASSERT_LT(cell.row, grid.rows);
        ASSERT_LT(cell.column, grid.columns);
        ASSERT_FALSE(cell.row < grid.holes && cell.column == cell.row % grid.columns) << "a hole";
        ASSERT_EQ(grid.place(cell), place);
        ASSERT_EQ(grid.place_in_column(cell), in_column[cell.column]);
        ASSERT_EQ(grid.row_in_column(cell.column, in_column[cell.column]), cell.row);
        ++in_column[cell.column];
      }
      for (std::uint32_t column = 0; column < grid.columns; ++column) {
        ASSERT_EQ(grid.column_size(column), in_column[column]);
      }
    }
  }
}

// 7 workers, groups of at most 3: the drawing at the head of grid.h.
TEST(Grid, DrawnExample) {
  using List = std::vector<std::uint32_t>;
  const GridWithHoles grid(7, 3);
  ASSERT_EQ(grid.rounds(), 2u);
  EXPECT_EQ(grid.group(0, 0), (List{0, 1}));
  EXPECT_EQ(grid.group(0, 2), (List{2, 3}));
  EXPECT_EQ(grid.group(0, 5), (List{4, 5, 6}));
  EXPECT_EQ(grid.group(1, 2), (List{2, 4}));
  EXPECT_EQ(grid.group(1, 0), (List{0, 5}));
  EXPECT_EQ(grid.group(1, 6), (List{1, 3, 6}));
}

// At any step, over all workers.
std::pair<std::size_t, std::size_t> group_sizes(const Schedule& schedule, std::int64_t step,
                                                const View& view) {
  std::size_t least = view.count();
  std::size_t most = 0;
  for (const Rank rank : view.live()) {
    const auto group = std::get<Group>(schedule.row(Step{step}, rank, view));
    least = std::min(least, group.members.size());
    most = std::max(most, group.members.size());
  }
  return {least, most};
}

TEST(Groups, SizesDifferByAtMostOneAndNeverExceedS) {
  for (std::uint32_t n = 2; n <= 700; n += n < 130 ? 1 : 37) {
    for (std::uint32_t size = 2; size <= std::min(n, 18u); ++size) {
      const View view = View::full(n);
      for (const char* name : {"groups", "fixed-groups"}) {
        const auto schedule = make_schedule(name, {.workers = n, .group_size = size});
        for (std::int64_t t = 0; t < *schedule->period(view); ++t) {
          const auto [least, most] = group_sizes(*schedule, t, view);
          ASSERT_LE(most, size) << name << " " << n << " " << size;
          ASSERT_LE(most - least, 1u) << name << " " << n << " " << size << " step " << t;
        }
      }
    }
  }
}

// Exact in R = ⌈log_S N⌉ rounds when N is a product of R factors <= S, from any step on; never when
// a prime factor exceeds S.
TEST(Groups, ExactExactlyWhenFactorsAllow) {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    for (std::uint32_t size = 2; size <= n; ++size) {
      const View view = View::full(n);
      const auto schedule = make_schedule("groups", {.workers = n, .group_size = size});
      const std::uint32_t rounds = ceil_log(n, size);
      const std::int64_t first = size % 3;
      const auto exact = rounds_to_exact(*schedule, view, first, 3 * rounds);
      if (flattest_factors(n, rounds, size)) {
        EXPECT_EQ(exact, rounds) << n << " " << size;
      } else {
        EXPECT_EQ(exact, std::nullopt) << n << " " << size;
        EXPECT_EQ(schedule->period(view), rounds) << n << " " << size;
      }
    }
  }
}

TEST(Groups, MixedRadixTwelveByFour) {
  const View view = View::full(12);
  const auto schedule = make_schedule("groups", {.workers = 12, .group_size = 4});
  const auto group = [&](std::int64_t t, std::uint32_t r) {
    return std::get<Group>(schedule->row(Step{t}, Rank{r}, view)).members;
  };
  EXPECT_EQ(group(0, 5), (std::vector<Rank>{{4}, {5}, {6}, {7}}));
  EXPECT_EQ(group(1, 5), (std::vector<Rank>{{1}, {5}, {9}}));
}

TEST(Groups, ALostWorkerIsOneMoreHole) {
  const auto schedule = make_schedule("groups", {.workers = 16, .group_size = 4});
  std::vector<Rank> live;
  for (std::uint32_t r = 0; r < 16; ++r) {
    if (r != 5) {
      live.push_back(Rank{r});
    }
  }
  const View view(16, live);
  const auto group = [&](std::int64_t t, std::uint32_t r) {
    return std::get<Group>(schedule->row(Step{t}, Rank{r}, view));
  };
  EXPECT_EQ(group(0, 4), uniform_group({{4}, {6}, {7}}));
  EXPECT_EQ(group(1, 1), uniform_group({{1}, {9}, {13}}));
  EXPECT_EQ(group(1, 0), uniform_group({{0}, {4}, {8}, {12}}));
}

TEST(Groups, FixedGroupsAreTheRows) {
  const View view = View::full(10);
  const auto schedule = make_schedule("fixed-groups", {.workers = 10, .group_size = 4});
  for (std::int64_t t : {0, 1, 7}) {
    EXPECT_EQ(std::get<Group>(schedule->row(Step{t}, Rank{0}, view)),
              uniform_group({{0}, {1}, {2}}));
    EXPECT_EQ(std::get<Group>(schedule->row(Step{t}, Rank{7}, view)),
              uniform_group({{6}, {7}, {8}, {9}}));
  }
}

TEST(Groups, DefaultSizeIsAboutTheRoot) {
  for (const auto& [n, size] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {1, 1}, {2, 2}, {4, 2}, {8, 4}, {16, 4}, {64, 8}, {256, 16}, {1024, 32}, {10, 4}}) {
    EXPECT_EQ(default_group_size(n), size) << n;
  }
}

}  // namespace
}  // namespace starling::topology
