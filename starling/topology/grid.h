// A grid with holes: any number of places in rows and columns so that group sizes differ by at most
// one. `size` places fill q rows of s columns, h = q·s − size cells stay empty: each of the first h
// rows has one hole, row i in column i mod s. Places are numbered along the rows.
//
//   size 7, limit 3:  q = 3, s = 3, h = 2      · 0 1
//                                              2 · 3
//                                              4 5 6
//
// When q exceeds the limit a column is a grid again (GridWithHoles): all columns of a level share
// one q and s, chosen for the fullest, so that the sizes keep differing by at most one.
#pragma once

#include <cstdint>
#include <vector>

namespace starling::topology {

// One level. Requires: h = q·s − size is 0 … q.
struct Grid {
  std::uint32_t rows = 1;     // q
  std::uint32_t columns = 1;  // s
  std::uint32_t holes = 0;    // h

  struct Cell {
    std::uint32_t row = 0;
    std::uint32_t column = 0;
  };
  Cell cell(std::uint32_t place) const;
  std::uint32_t place(Cell cell) const;
  std::uint32_t row_size(std::uint32_t row) const { return columns - (row < holes ? 1 : 0); }
  std::uint32_t column_size(std::uint32_t column) const;
  // Where a cell stands in its column, and back.
  std::uint32_t place_in_column(Cell cell) const;
  std::uint32_t row_in_column(std::uint32_t column, std::uint32_t place) const;

  // q = ⌈size / limit⌉, s = ⌈size / q⌉.
  static Grid of(std::uint32_t size, std::uint32_t limit);
};

// Rounds 0 … rounds() − 1: the rows of the grid, the rows of its columns' grids, …, and at last
// the columns of the innermost. No group is larger than the limit.
class GridWithHoles {
 public:
  // Requires: size >= 1, limit >= 2.
  GridWithHoles(std::uint32_t size, std::uint32_t limit);

  std::uint32_t rounds() const { return static_cast<std::uint32_t>(levels_.size()) + 1; }
  // The places of the group of `place`, rising.
  std::vector<std::uint32_t> group(std::uint32_t round, std::uint32_t place) const;

 private:
  struct Level {
    std::uint32_t rows = 1;
    std::uint32_t columns = 1;
  };
  std::uint32_t size_;
  std::vector<Level> levels_;
};

}  // namespace starling::topology
