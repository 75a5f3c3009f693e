#include "starling/topology/view.h"

#include <utility>

#include "starling/base/error.h"

namespace starling::topology {

View View::full(std::uint32_t workers) {
  std::vector<Rank> live(workers);
  for (std::uint32_t r = 0; r < workers; ++r) {
    live[r] = Rank{r};
  }
  return View(workers, std::move(live));
}

View::View(std::uint32_t workers, std::vector<Rank> live)
    : live_(std::make_shared<const std::vector<Rank>>(std::move(live))) {
  const std::vector<Rank>& ranks = *live_;
  require(workers > 0, "0 workers: a schedule needs at least 1");
  require(!ranks.empty(), "a view of {} workers without anybody alive: at least 1 must be",
          workers);
  below_.reserve(workers + std::size_t{1});
  std::size_t next = 0;
  for (std::uint32_t r = 0; r < workers; ++r) {
    below_.push_back(static_cast<std::uint32_t>(next));
    next += next < ranks.size() && ranks[next].value == r ? 1 : 0;
  }
  below_.push_back(static_cast<std::uint32_t>(next));
  require(next == ranks.size(),
          "live rank {} is out of place: ranks must rise, without doubles, from 0 to {}",
          next < ranks.size() ? ranks[next].value : 0, workers - 1);
}

View View::packed() const {
  View view = *this;
  view.packed_ = true;
  return view;
}

}  // namespace starling::topology
