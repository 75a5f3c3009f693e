// groups: rotating groups of at most S, with R = ⌈log_S n⌉. One of three plans:
//   butterfly    n and S powers of two: WAGMA's. With G = log2 n, K = log2 S, step t averages over
//                the K bits from (t·K) mod G on, cyclically. Exact after R steps from any step on.
//   mixed radix  n is a product of R factors <= S: the flattest, one digit per step; exact
//   likewise. grid         otherwise, with holes (grid.h): a symmetric projection at every step,
//   never exact
//                (no averages over groups of at most S are, when a prime factor of n exceeds S).
// A lost worker is one more hole: nobody is renumbered. fixed-groups are the rows of the grid.
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <variant>

#include "starling/base/error.h"
#include "starling/topology/factors.h"
#include "starling/topology/grid.h"
#include "starling/topology/makers.h"

namespace starling::topology {
namespace {

// The live ones of `slots`.
Group live_group(const std::vector<std::uint32_t>& slots, const View& view) {
  std::vector<Rank> members;
  members.reserve(slots.size());
  for (const std::uint32_t slot : slots) {
    if (view.filled(slot)) {
      members.push_back(view.in_slot(slot));
    }
  }
  return uniform_group(std::move(members));
}

struct Butterfly {
  std::uint32_t bits = 0;      // G
  std::uint32_t per_step = 0;  // K

  std::int64_t period() const { return bits == 0 ? 1 : bits / std::gcd(bits, per_step); }
  std::vector<std::uint32_t> group(std::int64_t step, std::uint32_t slot) const {
    const std::uint32_t shift =
        bits == 0 ? 0 : static_cast<std::uint32_t>(step % period()) * per_step % bits;
    std::uint32_t mask = 0;
    for (std::uint32_t r = 0; r < per_step; ++r) {
      mask |= std::uint32_t{1} << ((shift + r) % bits);
    }
    std::vector<std::uint32_t> members(std::size_t{1} << per_step);
    std::uint32_t varied = 0;
    for (std::uint32_t& member : members) {
      member = (slot & ~mask) | varied;
      varied = (varied - mask) & mask;  // the next subset of the mask
    }
    return members;
  }
};

struct MixedRadix {
  std::vector<std::uint32_t> factors;

  std::int64_t period() const { return static_cast<std::int64_t>(factors.size()); }
  std::vector<std::uint32_t> group(std::int64_t step, std::uint32_t slot) const {
    const auto round = static_cast<std::size_t>(step % period());
    std::uint32_t stride = 1;
    for (std::size_t r = 0; r < round; ++r) {
      stride *= factors[r];
    }
    std::vector<std::uint32_t> members(factors[round]);
    std::uint32_t next = slot - slot / stride % factors[round] * stride;
    for (std::uint32_t& member : members) {
      member = next;
      next += stride;
    }
    return members;
  }
};

struct Holes {
  GridWithHoles grid;

  std::int64_t period() const { return grid.rounds(); }
  std::vector<std::uint32_t> group(std::int64_t step, std::uint32_t slot) const {
    return grid.group(static_cast<std::uint32_t>(step % period()), slot);
  }
};

using Plan = std::variant<Butterfly, MixedRadix, Holes>;

Plan plan_of(std::uint32_t slots, std::uint32_t size) {
  if (size <= 1 || (std::has_single_bit(slots) && std::has_single_bit(size))) {
    const auto log2 = [](std::uint32_t n) { return std::uint32_t(std::bit_width(n)) - 1; };
    return size <= 1 ? Butterfly{} : Butterfly{log2(slots), log2(size)};
  }
  if (auto factors = flattest_factors(slots, ceil_log(slots, size), size)) {
    return MixedRadix{std::move(*factors)};
  }
  return Holes{GridWithHoles(slots, size)};
}

class Groups : public Schedule {
 private:
  // The plan made for all workers, or one for a packed view.
  template <typename Use>
  auto with_plan(const View& view, Use use) const {
    const std::uint32_t slots = view.slots();
    return slots == workers_ ? std::visit(use, plan_)
                             : std::visit(use, plan_of(slots, std::min(size_, slots)));
  }

 public:
  Groups(std::uint32_t workers, std::uint32_t size)
      : workers_(workers), size_(size), plan_(plan_of(workers, size)) {}

  Row row(Step step, Rank rank, const View& view) const override {
    check(view.alive(rank), "rank {} is not in the view", rank);
    return with_plan(view, [&](const auto& plan) {
      return live_group(plan.group(step.value, view.slot(rank)), view);
    });
  }
  std::optional<std::int64_t> period(const View& view) const override {
    return with_plan(view, [](const auto& plan) { return plan.period(); });
  }

 private:
  std::uint32_t workers_;
  std::uint32_t size_;
  Plan plan_;
};

class FixedGroups : public Schedule {
 public:
  explicit FixedGroups(std::uint32_t size) : size_(size) {}

  Row row(Step, Rank rank, const View& view) const override {
    check(view.alive(rank), "rank {} is not in the view", rank);
    const Grid grid = Grid::of(view.slots(), size_);
    const std::uint32_t row = grid.cell(view.slot(rank)).row;
    std::vector<std::uint32_t> slots(grid.row_size(row));
    std::iota(slots.begin(), slots.end(), row * grid.columns - std::min(row, grid.holes));
    return live_group(slots, view);
  }
  std::optional<std::int64_t> period(const View&) const override { return 1; }

 private:
  std::uint32_t size_;
};

std::uint32_t checked_size(const ScheduleOptions& options) {
  const std::uint32_t size = options.group_size.value_or(default_group_size(options.workers));
  require(size >= 1 && size <= options.workers,
          "groups of {}: with {} workers the group size may be 1 to {}", size, options.workers,
          options.workers);
  return size;
}

}  // namespace

std::unique_ptr<Schedule> make_groups(const ScheduleOptions& options) {
  return std::make_unique<Groups>(options.workers, checked_size(options));
}

std::unique_ptr<Schedule> make_fixed_groups(const ScheduleOptions& options) {
  return std::make_unique<FixedGroups>(checked_size(options));
}

}  // namespace starling::topology
