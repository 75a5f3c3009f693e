#include "starling/base/suggestion.h"

#include <algorithm>
#include <vector>

namespace starling {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the usual table; `before` is two letters back, for swaps.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> names) {
  return *std::min_element(names.begin(), names.end(), [&](auto a, auto b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
}

}  // namespace starling
