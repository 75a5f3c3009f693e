// Who takes part: the agreement of all engines on the workers taken to be alive (the view), its
// epoch, and the first version (round) it holds for. A state machine without clock, thread or
// network: its Host carries messages and does what it says.
//
//   a loss is learnt       -> freeze: no version starts or ends here any more; State(epoch, lost,
//                             left, own next version) to every survivor
//   a State brings more    -> the own sets grow, and are sent to everyone again
//   all survivors' States
//   of this epoch agree    -> install: view = survivors, from version V = the largest next version
//   an old message comes   -> is answered with the installed view, which its sender installs
//
// Rules that keep it one view, each needed (tests/comm/view_schedules_test.cc finds the schedule
// that breaks the rest):
//   - nothing is heard from a worker once it was announced lost; it is told that it is excluded
//   - the own next version does not change between the first State of an epoch and the install
//   - a side that holds less than half of the view, or half without its lowest rank, fails; workers
//     that left in good order count on neither side
// A worker that has finished leaves by the same road: it says so itself, and is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/units.h"
#include "starling/topology/view.h"

namespace starling::comm {

// The number of a round; that of step t is t.
using Version = std::uint64_t;
using Epoch = std::uint32_t;

class Membership {
 public:
  // What surrounds it. Called from inside lost(), heard() and leave(), never re-entered.
  class Host {
   public:
    // In order per pair. To a worker that is gone: dropped.
    virtual void send_view(Rank to, std::span<const std::byte> message) = 0;
    // From now on no version starts or ends here, until install(). Returns the own next version:
    // the first that has not ended here.
    virtual Version freeze() = 0;
    // The view of `epoch` holds from version `first` on: what has not ended below it is void.
    virtual void install(Epoch epoch, const topology::View& view, Version first) = 0;
    // This worker takes part no more: it was excluded, or is on the smaller side of a cut.
    virtual void fail(const Error& why) = 0;

   protected:
    ~Host() = default;
  };

  Membership(Rank self, topology::View view, Host& host);

  const topology::View& view() const { return view_; }
  Epoch epoch() const { return epoch_; }
  bool frozen() const { return frozen_; }
  // Whether nothing is heard from `peer` any more: it is outside the view, or announced lost.
  bool ignores(Rank peer) const;

  // The endpoint reports a loss.
  void lost(Rank peer);
  // A message of another worker's membership.
  void heard(Rank from, std::span<const std::byte> message);
  // This worker has finished: says so to everyone. Nothing is installed here afterwards.
  void leave();

 private:
  struct State {
    std::set<Rank> lost;
    std::set<Rank> left;
    Version next = 0;
  };

  Rank self_;
  topology::View view_;
  Host& host_;
  Epoch epoch_ = 0;
  bool frozen_ = false;
  bool ended_ = false;  // left, excluded, or on the smaller side
  Version first_ = 0;   // of the installed view
  State own_;
  std::map<Rank, State> states_;  // what the others said last, in this epoch
};

}  // namespace starling::comm
