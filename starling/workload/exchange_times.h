// How long exchanges take when everybody is at it at once, as the runtime model wants to know.
//
// Threads: the application's. Collective: all workers call the same, in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "starling/base/time.h"
#include "starling/comm/workers.h"
#include "starling/model/profile.h"
#include "starling/topology/schedule.h"
#include "starling/workload/meeting.h"

namespace starling::workload {

class ExchangeTimes {
 public:
  // For buffers of up to `most` bytes.
  ExchangeTimes(comm::Workers& workers, Meetings& meetings, std::size_t most);

  // About as many repetitions as `budget` has room for, at least `fewest`: on a busy machine one
  // takes a tenth more or less than the next.
  struct Effort {
    Seconds budget{0.25};
    std::size_t fewest = 12;
  };
  // What `pattern` has everybody do at step `phase`, with so many bytes: seconds of one exchange by
  // rank, of several in a row, the mean of all repetitions.
  std::vector<double> measure(const model::Pattern& pattern, const topology::Schedule& schedule,
                              Step phase, std::size_t bytes, Effort effort);
  // Two workers alone, while the others wait.
  model::Link link(Rank a, Rank b);

 private:
  // One repetition: a barrier, then `count` exchanges, beside an application that touches as much
  // memory as updates do; seconds of each.
  double run_once(const model::Pattern& pattern, const topology::Row& row, std::size_t bytes,
                  std::size_t count);
  std::vector<double> repeat(const model::Pattern& pattern, const topology::Row& row,
                             std::size_t bytes, Effort effort);

  comm::Workers& workers_;
  Meetings& meetings_;
  std::vector<Rank> everyone_;
  comm::PoolMemory in_;
  comm::PoolMemory out_;
  std::vector<std::byte> model_;
  std::vector<std::byte> copy_;
  std::uint64_t id_ = 0;
};

}  // namespace starling::workload
