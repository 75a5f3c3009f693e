// Memberships by hand: messages between them travel when the test says so, in order per pair.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "starling/comm/view.h"

namespace starling::comm {

using Live = std::vector<std::uint32_t>;

class Bus;

// One worker: a membership and what it told its host.
class Member final : public Membership::Host {
 public:
  Member(Bus& bus, Rank self, std::uint32_t workers)
      : membership(self, topology::View::full(workers), *this), bus_(bus), self_(self) {}

  void send_view(Rank to, std::span<const std::byte> message) override;
  Version freeze() override {
    ++freezes;
    return next;
  }
  void install(Epoch epoch, const topology::View& view, Version from) override {
    EXPECT_EQ(epoch, installs + 1);
    ++installs;
    live.clear();
    for (const Rank rank : view.live()) {
      live.push_back(rank.value);
    }
    first = from;
    history.emplace_back(live, first);
    next = std::max(next, from);
  }
  void fail(const Error& why) override {
    EXPECT_EQ(why.code(), ErrorCode::Lost);
    EXPECT_TRUE(failure.empty()) << "failed twice";
    failure = why.what();
  }

  Version next = 0;
  int freezes = 0;
  Epoch installs = 0;
  Live live;  // of the last install
  Version first = 0;
  std::vector<std::pair<Live, Version>> history;  // of all installs
  std::string failure;
  Membership membership;

 private:
  Bus& bus_;
  Rank self_;
};

class Bus {
 public:
  explicit Bus(std::uint32_t workers) {
    for (std::uint32_t r = 0; r < workers; ++r) {
      members_.push_back(std::make_unique<Member>(*this, Rank{r}, workers));
    }
  }

  Member& operator[](std::uint32_t rank) { return *members_[rank]; }
  void lose(std::uint32_t at, std::uint32_t whom) { members_[at]->membership.lost({whom}); }
  // From now on it hears nothing and says nothing; what it said is still on the way.
  void kill(std::uint32_t rank) { dead_.insert(rank); }
  // What it said and did not arrive never does.
  void drop(std::uint32_t from, std::uint32_t to) { ways_[{from, to}].clear(); }
  void send(std::uint32_t from, std::uint32_t to, std::span<const std::byte> message) {
    if (!dead_.contains(from)) {
      ways_[{from, to}].emplace_back(message.begin(), message.end());
    }
  }
  bool dead(std::uint32_t rank) const { return dead_.contains(rank); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  std::size_t under_way(std::uint32_t from, std::uint32_t to) { return ways_[{from, to}].size(); }
  // The first of what is under way on this road, or all of it.
  void deliver_one(std::uint32_t from, std::uint32_t to) {
    auto& way = ways_[{from, to}];
    const std::vector<std::byte> message = way.front();
    way.pop_front();
    if (!dead_.contains(to)) {
      members_[to]->membership.heard({from}, message);
    }
  }
  void deliver(std::uint32_t from, std::uint32_t to) {
    for (std::size_t count = under_way(from, to); count > 0; --count) {
      deliver_one(from, to);
    }
  }
  // Until nobody has anything to say.
  void settle() {
    for (bool busy = true; busy;) {
      busy = false;
      for (std::uint32_t from = 0; from < members_.size(); ++from) {
        for (std::uint32_t to = 0; to < members_.size(); ++to) {
          busy |= under_way(from, to) > 0;
          deliver(from, to);
        }
      }
    }
  }

  void expect(const std::set<std::uint32_t>& who, Epoch epoch, const Live& live, Version first) {
    for (const std::uint32_t rank : who) {
      Member& member = *members_[rank];
      EXPECT_EQ(member.failure, "") << "worker " << rank;
      EXPECT_FALSE(member.membership.frozen()) << "worker " << rank;
      EXPECT_EQ(member.membership.epoch(), epoch) << "worker " << rank;
      EXPECT_EQ(member.live, live) << "worker " << rank;
      EXPECT_EQ(member.first, first) << "worker " << rank;
    }
  }

 private:
  std::vector<std::unique_ptr<Member>> members_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<std::vector<std::byte>>> ways_;
  std::set<std::uint32_t> dead_;
};

inline void Member::send_view(Rank to, std::span<const std::byte> message) {
  EXPECT_NE(to, self_);
  bus_.send(self_.value, to.value, message);
}

}  // namespace starling::comm
