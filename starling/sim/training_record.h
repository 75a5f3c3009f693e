// What happens in a simulated training, put together: when steps end, how long workers wait and
// for what, how old contributions are. It sees all workers, so it knows when the last member of a
// round had arrived.
//
// A wait for a round in which everyone takes part in person is for stragglers until the last of
// those who exchange with this worker has handed over its part; of any other round, until it was
// started here. The rest is the exchange.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "starling/comm/step.h"
#include "starling/sim/slice.h"
#include "starling/sim/training.h"
#include "starling/topology/view.h"

namespace starling::sim {

class TrainingRecord {
 public:
  // `steps` outlives this.
  TrainingRecord(const TrainingOptions& options, const comm::StepOptions& steps);

  // Worker `r` did this from `begin` to `end`.
  void did(Slice::What what, Rank r, Step step, Time begin, Time end,
           std::optional<std::size_t> part = {});
  // It has handed over its part of version `v`, or a part of that.
  void handed_over(Rank r, comm::Version v, Time now, std::size_t part = 0);
  // It has waited for version `v`, or a part of it.
  void waited(Rank r, Step step, comm::Version v, Time begin, Time end, std::size_t part = 0);
  void ended(Rank r, Step step, Time now);
  // A part of a version was under way, before its outcome is observed.
  void exchanged(Rank r, std::size_t part, Time begin, Time end);
  void observed(Rank r, const comm::Outcome& outcome);

  double done() const;  // of all steps of all workers
  bool all_done() const { return steps_ended_ == workers_.size() * step_ends_.size(); }
  // What is known of time and rounds.
  void fill(TrainingResult& result) const;

 private:
  // Who has handed over what of a version, until everyone is past it.
  struct Arrivals {
    std::vector<Time> times;  // by worker, then part
    std::vector<Time> last;   // of all workers, by part
    std::uint32_t past = 0;   // workers that have ended the step
  };
  struct Worker {
    comm::Version activated_version = 0;
    Time activated{};
    Time ended{};
    std::vector<Slice> exchanges{};  // of the version under way, if they are traced
  };

  bool in_person(comm::Version v) const;
  bool is_sync(comm::Version v) const;
  Arrivals* arrivals(comm::Version v);
  Time last_arrival(Rank r, comm::Version v, std::size_t part);
  std::vector<double> batches() const;

  const comm::StepOptions& steps_;
  comm::RoundsOptions rounds_;
  topology::View view_;
  std::uint32_t trace_workers_;
  std::int64_t trace_steps_;
  std::size_t parts_;

  std::vector<Worker> workers_;
  std::deque<Arrivals> arrivals_;  // from version first_arrivals_ on
  comm::Version first_arrivals_ = 0;
  std::vector<Time> step_ends_;  // of the last worker, by step
  std::uint64_t steps_ended_ = 0;
  StepShares sums_;
  std::uint64_t contributions_ = 0;
  std::uint64_t syncs_ = 0;
  std::uint64_t stale_ = 0;
  std::uint64_t nothing_ = 0;
  std::map<std::int64_t, std::uint64_t> ages_;
  std::vector<Slice> slices_;
};

}  // namespace starling::sim
