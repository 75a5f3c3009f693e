// Who takes part: the agreement of all engines on the workers taken to be alive (the view), its
// epoch, and the first version (round) it holds for. A state machine without clock, thread or
// network: its Host carries messages and does what it says.
//
//   a loss is learnt       -> freeze: no version starts or ends here any more; State(epoch, view,
//                             lost, left, own next version) to everyone
//   a State brings more    -> the own sets grow, and are sent to everyone again
//   all survivors' States
//   of this epoch agree    -> install: view = survivors, from version V = the largest next version
//                             of survivors and of those who left
//   a newer epoch is heard -> every State names the view it is about, which is installed at once;
//                             what is known beyond it starts the next change
//   an old State comes     -> what it knows counts: if its sender needs to be told of the newer
//                             view, it knows something more, and the State that follows tells it
//
// Rules that keep it one view, each needed: tests/comm/view_test.cc and view_schedules_test.cc show
// what goes wrong without it.
//   - nothing is heard from a worker once it was announced lost; it is told that it is excluded.
//     Else the newer view of a dying worker would draw one survivor away from what it has agreed
//     with the others.
//   - the own next version does not change between the first State of an epoch and the install
//   - those who left count for V: what they have ended must not be done again without them. The
//     last average of a job would differ between the first to leave and the rest.
//   - a side that holds less than half of the view, or half without its lowest rank, fails; workers
//     that left in good order count on neither side
// A worker that has finished leaves by the same road: it says so itself, and is gone.
//
// Why it is one view. Sets only grow within an epoch, and whoever installs with the sets X has X
// from every survivor of X. If two sets are installed, the two sides share a worker (each is a
// majority), which had both: so one contains the other, X ⊂ Y. Survivors of Y have all announced Y,
// and whoever installed X has not: it is in Y, and they hear it no more. It cannot go on either,
// for their majority is missing in its view. So: two workers that are in each other's view of an
// epoch have the same view and the same V; but a worker that is about to be lost may for a while
// hold a view of its own under the same epoch. What it says then is not heard, for it is outside
// the others' view: hosts drop what comes from a worker that ignores() names, and what they have
// kept from it for an epoch to come.
//
// What hosts make of V: a version below V that has not ended is void. A version that all workers of
// the view end or none (a sync) ends with a closing barrier: once it has all contributions a worker
// is prepared and says so, and it ends when all have said so. Below V a prepared one has ended
// then, with the members of the old view; from V on it starts again in the new one. If one survivor
// has ended it all are prepared and V is beyond it: nobody has it void, and nobody does it twice.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/units.h"
#include "starling/comm/view_message.h"
#include "starling/topology/view.h"

namespace starling::comm {

class Membership {
 public:
  // What surrounds it. Called from inside lost(), heard() and leave(), never re-entered.
  class Host {
   public:
    // In order per pair. To a worker that is gone: dropped.
    virtual void send_view(Rank to, std::span<const std::byte> message) = 0;
    // From now on no version starts or ends here, until install(). Returns the own next version:
    // the first that has not ended here. Sends nothing: what others are told because of it (that a
    // round is off) must come after the State, when the call that froze has returned.
    virtual Version freeze() = 0;
    // The view of `epoch` holds from version `first` on: what has not ended below it is void (but
    // see the head of this file for syncs), so the own next version is now at least `first`. May be
    // followed by freeze() within the same call.
    virtual void install(Epoch epoch, const topology::View& view, Version first) = 0;
    // This worker takes part no more: it was excluded, or is on the smaller side of a cut.
    virtual void fail(const Error& why) = 0;

   protected:
    ~Host() = default;
  };

  // Throws Error{Input} for a job of more than kMostInView workers.
  Membership(Rank self, topology::View view, Host& host);

  const topology::View& view() const { return view_; }
  Epoch epoch() const { return epoch_; }
  bool frozen() const { return frozen_; }
  // Whether nothing is heard from `peer` any more: it is outside the view, has left, or was
  // announced lost. Once true it remains so.
  bool ignores(Rank peer) const { return standings_[peer.index()] != Standing::Alive; }

  // The endpoint reports a loss, or this worker does not want to wait for `peer` any longer: one
  // worker's word is enough, and `peer` is lost to all.
  void lost(Rank peer);
  // A message of another worker's membership.
  void heard(Rank from, std::span<const std::byte> message);
  // This worker has finished: says so to everyone. Nothing is installed here afterwards.
  void leave();

 private:
  Standing& standing(Rank rank) { return standings_[rank.index()]; }
  bool learn(const ViewMessage& message);
  void settle(bool grown);
  void freeze();
  bool agreed() const;
  void install(Epoch epoch, const Standings& standings, Version first);
  ViewMessage message(ViewKind kind) const;
  void announce();
  bool holds_majority() const;
  void fail(const std::string& text);

  Rank self_;
  topology::View view_;
  Host& host_;
  Epoch epoch_ = 0;
  bool frozen_ = false;
  bool ended_ = false;  // left, excluded, or on the smaller side
  Version first_ = 0;   // of the installed view
  Version next_ = 0;    // since freeze()
  Version passed_ = 0;  // the largest next version of those who left, in this epoch
  Standings standings_;
  std::map<Rank, ViewMessage> states_;  // what the others said last, in this epoch
};

}  // namespace starling::comm
