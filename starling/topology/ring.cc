// ring: pairs along a ring of the live workers, with the right neighbour and the left one in turn.
//   even n, step 0:  0-1 2-3 4-5     step 1:  5-0 1-2 3-4      period 2 (1 for n = 2)
//   odd n, one rests: step 0: 0-1 2-3 [4]; step 1: 4-0 1-2 [3]; two more, the rest moving on by
//   one, so that sides keep alternating and every edge of the ring is used; period 4 (3 for n = 3)
// ring-neighbours: both neighbours at 1/3 at every step (D-PSGD); two workers average.
#include <algorithm>

#include "starling/base/error.h"
#include "starling/topology/makers.h"

namespace starling::topology {
namespace {

class Ring : public Schedule {
 public:
  Row row(Step step, Rank rank, const View& view) const override {
    check(view.alive(rank), "rank {} is not in the view", rank);
    const std::uint32_t n = view.count();
    const auto shift = static_cast<std::uint32_t>(step.value % cycle(n));
    // Counted from the first worker of the first pair: partners are 2k and 2k + 1.
    const std::uint32_t place = (view.position(rank) + shift) % n;
    const std::uint32_t partner = place ^ 1;
    if (partner >= n) {
      return uniform_group({rank});
    }
    const Rank other = view.at((partner + n - shift) % n);
    return uniform_group({std::min(rank, other), std::max(rank, other)});
  }
  std::optional<std::int64_t> period(const View& view) const override {
    return cycle(view.count());
  }

 private:
  static std::int64_t cycle(std::uint32_t n) {
    if (n % 2 == 0 || n == 1) {
      return n <= 2 ? 1 : 2;
    }
    return n == 3 ? 3 : 4;
  }
};

class RingNeighbours : public Schedule {
 public:
  Row row(Step, Rank rank, const View& view) const override {
    check(view.alive(rank), "rank {} is not in the view", rank);
    const std::uint32_t n = view.count();
    if (n <= 2) {
      return uniform_group(view.everybody());
    }
    const std::uint32_t here = view.position(rank);
    const Rank left = view.at((here + n - 1) % n);
    const Rank right = view.at((here + 1) % n);
    Neighbours both{
        1.0 / 3, {{std::min(left, right), 1.0 / 3}, {std::max(left, right), 1.0 / 3}}, {}};
    both.out = both.in;
    return both;
  }
  std::optional<std::int64_t> period(const View&) const override { return 1; }
};

}  // namespace

std::unique_ptr<Schedule> make_ring(const ScheduleOptions&) { return std::make_unique<Ring>(); }

std::unique_ptr<Schedule> make_ring_neighbours(const ScheduleOptions&) {
  return std::make_unique<RingNeighbours>();
}

}  // namespace starling::topology
