// complete: one group of everybody, at every step. Exact after one step.
#include "starling/base/error.h"
#include "starling/topology/makers.h"

namespace starling::topology {
namespace {

class Complete : public Schedule {
 public:
  Row row(Step, Rank rank, const View& view) const override {
    check(view.alive(rank), "rank {} is not in the view", rank);
    return uniform_group(view.everybody());
  }
  std::optional<std::int64_t> period(const View&) const override { return 1; }
};

}  // namespace

std::unique_ptr<Schedule> make_complete(const ScheduleOptions&) {
  return std::make_unique<Complete>();
}

}  // namespace starling::topology
