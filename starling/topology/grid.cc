#include "starling/topology/grid.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "starling/base/error.h"

namespace starling::topology {

Grid Grid::of(std::uint32_t size, std::uint32_t limit) {
  const std::uint32_t rows = (size + limit - 1) / limit;
  const std::uint32_t columns = (size + rows - 1) / rows;
  return {rows, columns, rows * columns - size};
}

Grid::Cell Grid::cell(std::uint32_t place) const {
  const std::uint32_t in_short_rows = holes * (columns - 1);
  if (place >= in_short_rows) {
    const std::uint32_t rest = place - in_short_rows;
    return {holes + rest / columns, rest % columns};
  }
  const std::uint32_t row = place / (columns - 1);
  const std::uint32_t index = place % (columns - 1);
  return {row, index + (index >= row % columns ? 1 : 0)};
}

std::uint32_t Grid::place(Cell cell) const {
  if (cell.row >= holes) {
    return cell.row * columns - holes + cell.column;
  }
  return cell.row * (columns - 1) + cell.column - (cell.column > cell.row % columns ? 1 : 0);
}

std::uint32_t Grid::column_size(std::uint32_t column) const {
  return rows - (holes > column ? (holes - column - 1) / columns + 1 : 0);
}

std::uint32_t Grid::place_in_column(Cell cell) const {
  // Rows column, column + s, … below h have their hole here.
  const std::uint32_t above = std::min(cell.row, holes);
  return cell.row - (above > cell.column ? (above - cell.column - 1) / columns + 1 : 0);
}

std::uint32_t Grid::row_in_column(std::uint32_t column, std::uint32_t place) const {
  if (place < column || rows == column_size(column)) {
    return place;
  }
  // From row `column` on a hole comes before every columns − 1 members, as long as there are holes.
  const std::uint32_t all = rows - column_size(column);
  const std::uint32_t passed = columns > 1 ? (place - column) / (columns - 1) + 1 : all;
  return place + std::min(all, passed);
}

GridWithHoles::GridWithHoles(std::uint32_t size, std::uint32_t limit) : size_(size) {
  check(size >= 1 && limit >= 2, "no grid of {} places in groups of {}", size, limit);
  std::uint32_t fullest = size;
  while (fullest > limit) {
    const Grid grid = Grid::of(fullest, limit);
    levels_.push_back({grid.rows, grid.columns});
    fullest = grid.rows - grid.holes / grid.columns;
  }
}

std::vector<std::uint32_t> GridWithHoles::group(std::uint32_t round, std::uint32_t place) const {
  // Down to the level of the round, noting the way.
  std::array<Grid, 32> grids;
  std::array<std::uint32_t, 32> columns{};
  std::uint32_t size = size_;
  for (std::uint32_t level = 0; level < round; ++level) {
    grids[level] = {levels_[level].rows, levels_[level].columns, 0};
    grids[level].holes = levels_[level].rows * levels_[level].columns - size;
    const Grid::Cell cell = grids[level].cell(place);
    columns[level] = cell.column;
    place = grids[level].place_in_column(cell);
    size = grids[level].column_size(cell.column);
  }
  std::uint32_t first = 0;
  if (round < levels_.size()) {
    const Level& level = levels_[round];
    const Grid grid{level.rows, level.columns, level.rows * level.columns - size};
    const std::uint32_t row = grid.cell(place).row;
    first = row * level.columns - std::min(row, grid.holes);
    size = grid.row_size(row);
  }
  std::vector<std::uint32_t> members(size);
  std::iota(members.begin(), members.end(), first);
  // And back up, from places in a column to places in its grid.
  for (std::uint32_t level = round; level-- > 0;) {
    for (std::uint32_t& member : members) {
      member =
          grids[level].place({grids[level].row_in_column(columns[level], member), columns[level]});
    }
  }
  return members;
}

}  // namespace starling::topology
