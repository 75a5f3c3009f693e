// The workers taken to be alive, out of the N that a job began with. Ranks are never renumbered;
// a schedule looks at a view in one of two ways:
//   position  0 … count − 1, the place of a live rank among the live ones; rings and graphs of
//             peers close over the gap that a lost worker leaves
//   slot      where a worker sits in a grid; a lost worker leaves its slot empty (a hole).
// A value; const members are safe to call from any thread. Built in O(N), every question O(1).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "starling/base/units.h"
#include "starling/topology/ranks.h"

namespace starling::topology {

class View {
 public:
  // All of `workers`. Throws Error{Input} if there are none.
  static View full(std::uint32_t workers);
  // Throws Error{Input} unless `live` is sorted, without doubles, not empty and below `workers`.
  View(std::uint32_t workers, std::vector<Rank> live);

  // The number that the job began with.
  std::uint32_t workers() const { return static_cast<std::uint32_t>(below_.size()) - 1; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(live_->size()); }
  std::span<const Rank> live() const { return *live_; }
  // The same list, to keep.
  Ranks everybody() const { return live_; }
  bool alive(Rank rank) const {
    return rank.value < workers() && below_[rank.index() + 1] > below_[rank.index()];
  }
  // Live ranks smaller than `rank`, which may be N: the position of a live rank.
  std::uint32_t below(std::uint32_t rank) const { return below_[rank]; }
  std::uint32_t position(Rank rank) const { return below_[rank.index()]; }
  Rank at(std::uint32_t position) const { return (*live_)[position]; }

  // The same workers without holes: grids are laid out anew over the live ones. What an engine
  // turns to when so many are lost that the holes cut the rest apart (see is_connected).
  View packed() const;
  bool is_packed() const { return packed_; }
  std::uint32_t slots() const { return packed_ ? count() : workers(); }
  std::uint32_t slot(Rank rank) const { return packed_ ? position(rank) : rank.value; }
  bool filled(std::uint32_t slot) const { return packed_ || alive(Rank{slot}); }
  Rank in_slot(std::uint32_t slot) const { return packed_ ? at(slot) : Rank{slot}; }

 private:
  std::shared_ptr<const std::vector<Rank>> live_;
  std::vector<std::uint32_t> below_;  // N + 1 running counts
  bool packed_ = false;
};

}  // namespace starling::topology
