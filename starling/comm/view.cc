#include "starling/comm/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace starling::comm {
namespace {

std::vector<Rank> alive_in(const Standings& standings) {
  std::vector<Rank> alive;
  for (std::uint32_t r = 0; r < standings.size(); ++r) {
    if (standings[r] == Standing::Alive) {
      alive.push_back({r});
    }
  }
  return alive;
}

// A message names the whole view of its sender, the lost and the left included.
Standings view_of(Standings standings) {
  for (Standing& standing : standings) {
    standing = std::min(standing, Standing::Alive);
  }
  return standings;
}

}  // namespace

Membership::Membership(Rank self, topology::View view, Host& host)
    : self_(self), view_(std::move(view)), host_(host) {
  require(view_.workers() <= kMostInView, "{} workers are too many for one view; {} are fine",
          view_.workers(), kMostInView);
  check(view_.alive(self), "worker {} is not in its own view", self);
  standings_.resize(view_.workers(), Standing::Outside);
  for (const Rank rank : view_.live()) {
    standing(rank) = Standing::Alive;
  }
}

void Membership::lost(Rank peer) {
  check(peer != self_, "worker {} is lost to itself", peer);
  if (!ended_ && !ignores(peer)) {
    standing(peer) = Standing::Lost;
    settle(true);
  }
}

void Membership::leave() {
  if (ended_) {
    return;
  }
  freeze();
  standing(self_) = Standing::Left;
  passed_ = std::max(passed_, next_);
  announce();
  ended_ = true;
}

void Membership::heard(Rank from, std::span<const std::byte> packed) {
  if (ended_) {
    return;
  }
  const ViewMessage heard = unpack_view(packed, standings_.size());
  if (ignores(from)) {
    if (heard.kind != ViewKind::Excluded && standing(from) != Standing::Left) {
      host_.send_view(from, pack(message(ViewKind::Excluded)));
    }
    return;
  }
  if (heard.kind == ViewKind::Excluded || heard.standings[self_.index()] != Standing::Alive) {
    return fail(fmt::format("worker {} was excluded: worker {} took it for lost", self_, from));
  }
  if (heard.epoch > epoch_) {
    install(heard.epoch, view_of(heard.standings), heard.first);
  }
  const bool grown = learn(heard);
  if (heard.epoch == epoch_) {
    states_[from] = heard;
  }
  // After an install from outside, what was known beyond it is news in the new epoch.
  const bool known = alive_in(standings_).size() < view_.count();
  settle(grown || (known && !frozen_));
}

// Whether it brought anything new.
bool Membership::learn(const ViewMessage& heard) {
  bool grown = false;
  for (std::size_t r = 0; r < standings_.size(); ++r) {
    if (standings_[r] != Standing::Outside && heard.standings[r] > standings_[r]) {
      standings_[r] = heard.standings[r];
      grown = true;
    }
  }
  // Whoever left in an older epoch and is in this view was counted when it was installed. Only with
  // news: what was announced does not change.
  if (grown && heard.epoch == epoch_) {
    passed_ = std::max(passed_, heard.passed);
  }
  return grown;
}

void Membership::settle(bool grown) {
  if (grown) {
    if (!holds_majority()) {
      return fail(fmt::format(
          "worker {} stops: only {} of {} workers can be reached, itself included, and the others "
          "may go on without them",
          self_, alive_in(standings_).size(),
          view_.count() - std::count(standings_.begin(), standings_.end(), Standing::Left)));
    }
    freeze();
    announce();
  }
  if (frozen_ && agreed()) {
    Version first = std::max(next_, passed_);
    for (const auto& [rank, state] : states_) {
      if (!ignores(rank)) {
        first = std::max({first, state.next, state.passed});
      }
    }
    Standings survivors = standings_;
    for (Standing& standing : survivors) {
      standing = standing == Standing::Alive ? Standing::Alive : Standing::Outside;
    }
    install(epoch_ + 1, survivors, first);
  }
}

void Membership::freeze() {
  if (!frozen_) {
    next_ = host_.freeze();
    frozen_ = true;
  }
}

bool Membership::agreed() const {
  return std::ranges::all_of(alive_in(standings_), [&](Rank rank) {
    const auto said = states_.find(rank);
    return rank == self_ || (said != states_.end() && said->second.standings == standings_);
  });
}

// What is known of workers that are still in the view is kept.
void Membership::install(Epoch epoch, const Standings& standings, Version first) {
  epoch_ = epoch;
  view_ = topology::View(view_.workers(), alive_in(standings));
  first_ = first;
  frozen_ = false;
  passed_ = 0;
  states_.clear();
  for (std::size_t r = 0; r < standings_.size(); ++r) {
    standings_[r] = standings[r] == Standing::Outside ? Standing::Outside : standings_[r];
  }
  host_.install(epoch_, view_, first_);
}

ViewMessage Membership::message(ViewKind kind) const {
  return {.kind = kind,
          .epoch = epoch_,
          .first = first_,
          .next = next_,
          .passed = passed_,
          .standings = standings_};
}

// Also to those who are lost: one that lives is told in this way.
void Membership::announce() {
  const std::vector<std::byte> packed = pack(message(ViewKind::State));
  for (const Rank rank : view_.live()) {
    if (rank != self_ && standing(rank) != Standing::Left) {
      host_.send_view(rank, packed);
    }
  }
}

bool Membership::holds_majority() const {
  std::size_t reached = 0;
  std::size_t all = 0;
  bool lowest = false;  // whether the lowest rank is reached
  for (const Rank rank : view_.live()) {
    const Standing known = standings_[rank.index()];
    if (known != Standing::Left) {
      lowest = all == 0 ? known == Standing::Alive : lowest;
      reached += known == Standing::Alive ? 1 : 0;
      ++all;
    }
  }
  return 2 * reached > all || (2 * reached == all && lowest);
}

void Membership::fail(const std::string& text) {
  ended_ = true;
  host_.fail(Error(ErrorCode::Lost, text));
}

}  // namespace starling::comm
