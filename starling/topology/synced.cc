// Any schedule with a global average at every tau-th step: WAGMA's sync and local SGD's period.
// The inner schedule keeps counting through the sync steps.
#include <numeric>
#include <utility>

#include "starling/base/error.h"
#include "starling/topology/makers.h"

namespace starling::topology {
namespace {

class Synced : public Schedule {
 public:
  Synced(std::unique_ptr<Schedule> inner, std::uint32_t tau)
      : inner_(std::move(inner)), tau_(tau) {}

  Row row(Step step, Rank rank, const View& view) const override {
    if ((step.value + 1) % tau_ != 0) {
      return inner_->row(step, rank, view);
    }
    check(view.alive(rank), "rank {} is not in the view", rank);
    return uniform_group(view.everybody());
  }
  std::optional<std::int64_t> period(const View& view) const override {
    const auto inner = tau_ == 1 ? 1 : inner_->period(view);
    return inner ? std::optional(std::lcm(*inner, std::int64_t{tau_})) : std::nullopt;
  }

 private:
  std::unique_ptr<Schedule> inner_;
  std::uint32_t tau_;
};

}  // namespace

std::unique_ptr<Schedule> make_synced(std::unique_ptr<Schedule> inner, std::uint32_t sync_period) {
  return std::make_unique<Synced>(std::move(inner), sync_period);
}

}  // namespace starling::topology
