// The agreement on who is alive when messages come in any order that keeps that of each pair: at
// every step chance picks what happens next. Harsher than any network, and without rounds.
// STARLING_SCHEDULES sets how many seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "starling/base/random.h"
#include "tests/comm/view_bus.h"

namespace starling::comm {
namespace {

class Disorder {
 public:
  explicit Disorder(std::uint64_t seed)
      : draw_(Random(seed).stream(3)),
        bus_(2 + static_cast<std::uint32_t>(draw_.below(6))),
        left_(bus_.size()),
        troubles_(1 + draw_.below(bus_.size())),
        eager_(1 + draw_.below(30)) {}

  void run() {
    for (int step = 0; step < 400; ++step) {
      const std::uint32_t a = anyone();
      const std::uint32_t b = anyone();
      if (draw_.below(eager_) == 0 && troubles_ > 0) {
        trouble(a, b);
      } else if (bus_.dead(b) && draw_.below(4) == 0) {
        notice(a, b);
      } else if (bus_.under_way(a, b) > 0) {
        bus_.deliver_one(a, b);
      } else if (!bus_[a].membership.frozen()) {
        ++bus_[a].next;
      }
      bury();
    }
    calm();
  }

  void judge() {
    Live stayed;
    for (std::uint32_t r = 0; r < bus_.size(); ++r) {
      if (stays(r)) {
        stayed.push_back(r);
      }
    }
    for (const std::uint32_t r : stayed) {
      EXPECT_FALSE(bus_[r].membership.frozen()) << "worker " << r;
      EXPECT_EQ(bus_[r].membership.view().count(), stayed.size()) << "worker " << r;
      EXPECT_EQ(bus_[r].history, bus_[stayed.front()].history) << "worker " << r;
      EXPECT_TRUE(bus_[r].live.empty() || bus_[r].live == stayed) << "worker " << r;
    }
    for (std::uint32_t a = 0; a < bus_.size(); ++a) {
      for (std::uint32_t b = 0; b < a; ++b) {
        compare(a, b);
      }
    }
    for (std::uint32_t r = 0; r < bus_.size(); ++r) {
      if (honest_ && bus_[r].failure.find("excluded") != std::string::npos) {
        ADD_FAILURE() << bus_[r].failure << ", though only the dead were lost";
      }
    }
  }

 private:
  std::uint32_t anyone() { return static_cast<std::uint32_t>(draw_.below(bus_.size())); }
  bool stays(std::uint32_t r) { return !bus_.dead(r) && !left_[r] && bus_[r].failure.empty(); }

  void trouble(std::uint32_t a, std::uint32_t b) {
    --troubles_;
    const std::uint64_t kind = draw_.below(6);
    if (kind < 3) {
      bus_.kill(a);  // perhaps one who has just left
    } else if (!stays(a)) {
      return;
    } else if (kind < 5) {
      bus_[a].membership.leave();
      left_[a] = true;
    } else if (a != b) {
      honest_ = honest_ && bus_.dead(b);
      bus_.lose(a, b);
    }
  }

  // Its endpoint hears nothing more from the dead.
  void notice(std::uint32_t at, std::uint32_t whom) {
    if (at != whom && !bus_.dead(at)) {
      bus_.drop(whom, at);
      bus_.lose(at, whom);
    }
  }

  // Who has failed is gone.
  void bury() {
    for (std::uint32_t r = 0; r < bus_.size(); ++r) {
      if (!bus_[r].failure.empty()) {
        bus_.kill(r);
      }
    }
  }

  // Everyone learns of every death, in some order, until nothing happens any more.
  void calm() {
    for (bool busy = true; busy;) {
      busy = false;
      for (std::uint32_t a = 0; a < bus_.size(); ++a) {
        for (std::uint32_t b = 0; b < bus_.size(); ++b) {
          if (bus_.under_way(a, b) > 0) {
            bus_.deliver_one(a, b);
            busy = true;
          }
          if (bus_.dead(b) && stays(a) && a != b && noticed_.insert({a, b}).second) {
            notice(a, b);
            busy = true;
          }
          bury();
        }
      }
    }
  }

  // In each other's view of an epoch, they have the same one.
  void compare(std::uint32_t a, std::uint32_t b) {
    const auto& one = bus_[a].history;
    const auto& other = bus_[b].history;
    for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
      if (std::ranges::count(one[i].first, b) > 0 && std::ranges::count(other[i].first, a) > 0) {
        EXPECT_EQ(one[i], other[i]) << "workers " << a << " and " << b << ", epoch " << i + 1;
      }
    }
  }

  RandomSequence draw_;
  Bus bus_;
  std::vector<bool> left_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> noticed_;
  std::uint64_t troubles_;
  std::uint64_t eager_;
  bool honest_ = true;
};

TEST(ViewOrders, SurvivorsAgreeInAnyOrder) {
  const char* text = std::getenv("STARLING_SCHEDULES");
  const std::uint64_t seeds = text == nullptr ? 1000 : std::stoull(text);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Disorder disorder(seed);
    disorder.run();
    disorder.judge();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace starling::comm
