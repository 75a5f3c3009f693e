// pairs: random disjoint pairs, drawn anew at every step from (seed, step). The live workers are
// permuted (permutation.h) and neighbours 2k, 2k + 1 of the permuted order average; with an odd
// number one rests. Every pair is as likely as every other.
#include <algorithm>

#include "starling/base/error.h"
#include "starling/base/permutation.h"
#include "starling/topology/makers.h"

namespace starling::topology {
namespace {

class Pairs : public Schedule {
 public:
  explicit Pairs(std::uint64_t seed) : random_(seed) {}

  Row row(Step step, Rank rank, const View& view) const override {
    check(view.alive(rank), "rank {} is not in the view", rank);
    const Permutation order(random_.stream(static_cast<std::uint64_t>(step.value)), view.count());
    const std::uint32_t partner = order.image(view.position(rank)) ^ 1;
    if (partner >= view.count()) {
      return uniform_group({rank});
    }
    const Rank other = view.at(order.origin(partner));
    return uniform_group({std::min(rank, other), std::max(rank, other)});
  }

  std::optional<std::int64_t> period(const View& view) const override {
    return view.count() <= 2 ? std::optional<std::int64_t>(1) : std::nullopt;
  }

  // E[W] of a random matching, by symmetry I·a + J·b; its trace gives a.
  std::optional<double> expected_factor(const View& view) const override {
    const double n = view.count();
    if (n <= 1) {
      return 0;
    }
    return view.count() % 2 == 0 ? (n - 2) / (2 * (n - 1)) : 0.5;
  }

 private:
  Random random_;
};

}  // namespace

std::unique_ptr<Schedule> make_pairs(const ScheduleOptions& options) {
  return std::make_unique<Pairs>(options.seed);
}

}  // namespace starling::topology
