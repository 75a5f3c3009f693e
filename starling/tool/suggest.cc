#include "starling/tool/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "starling/base/suggestion.h"

namespace starling::tool {

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  std::size_t fewest = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = edit_distance(word, candidate);
    if (edits < fewest) {
      fewest = edits;
      best = candidate;
    }
  }
  return best;
}

std::string unknown(std::string_view what, std::string_view word,
                    std::span<const std::string> candidates) {
  const std::string meant = nearest(word, candidates);
  return fmt::format("unknown {} '{}'{} ({})", what, word,
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant),
                     fmt::join(candidates, ", "));
}

}  // namespace starling::tool
