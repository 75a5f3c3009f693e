// Packets through shared memory: their order, full rings, and that no sleeper misses one.
#include "starling/comm/mailbox.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "starling/base/random.h"
#include "starling/comm/pool.h"
#include "starling/comm/wire.h"

namespace starling::comm {
namespace {

constexpr std::size_t kRing = 16;  // packets

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool readable(int file, int milliseconds = 0) {
  pollfd waiting{.fd = file, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, milliseconds) > 0;
}

// An inbox, and whoever writes to it.
struct Post {
  explicit Post(const std::vector<std::size_t>& seats = {0}) : pool(4096), inbox(pool.inbox()) {
    for (const std::size_t seat : seats) {
      views.push_back(std::move(PoolView::open(pool.address(), seat).value()));
    }
  }
  Outbox& sender(std::size_t i = 0) { return views[i].outbox(); }
  void put(std::string_view text) { sender().put(bytes_of(text)); }
  // Everything that is there now; `rooms` is who was told to have room.
  bool take() {
    return inbox.take(
        [this](std::size_t seat, std::span<const std::byte> packet) {
          letters.emplace_back(seat, text_of(packet));
        },
        [this](std::size_t seat) { rooms.push_back(seat); });
  }

  Pool pool;
  Inbox& inbox;
  std::vector<PoolView> views;
  std::vector<std::pair<std::size_t, std::string>> letters;
  std::vector<std::size_t> rooms;
};

TEST(Mailbox, PacketsOfASenderComeInOrder) {
  Post post;
  EXPECT_FALSE(post.inbox.has_mail());
  EXPECT_FALSE(post.take());
  for (int round = 0; round < 50; ++round) {
    post.letters.clear();
    for (int i = 0; i < 7; ++i) {
      post.put(fmt::format("{} {}", round, i));
    }
    EXPECT_TRUE(post.inbox.has_mail());
    EXPECT_TRUE(post.take());
    EXPECT_FALSE(post.inbox.has_mail());
    ASSERT_EQ(post.letters.size(), 7u);
    for (int i = 0; i < 7; ++i) {
      EXPECT_EQ(post.letters[static_cast<std::size_t>(i)].second, fmt::format("{} {}", round, i));
    }
  }
  EXPECT_TRUE(post.rooms.empty()) << "nobody waited for room";
}

TEST(Mailbox, ManySendersDoNotMix) {
  const std::vector<std::size_t> seats = {0, 1, 63, 64, 127, 200, kMostSeats - 1};
  Post post(seats);
  RandomSequence draw{Random(1)};
  std::vector<int> sent(seats.size());
  for (int i = 0; i < 2000; ++i) {
    const std::size_t who = draw.below(seats.size());
    post.sender(who).put(bytes_of(fmt::format("{}", sent[who]++)));
    if (draw.below(10) == 0) {
      post.take();
      for (std::size_t s = 0; s < seats.size(); ++s) {
        post.sender(s).flush();
      }
    }
  }
  for (int i = 0; i < 200; ++i) {
    post.take();
    for (std::size_t s = 0; s < seats.size(); ++s) {
      post.sender(s).flush();
    }
  }
  std::vector<int> next(kMostSeats);
  for (const auto& [seat, text] : post.letters) {
    ASSERT_EQ(text, fmt::format("{}", next[seat]++));
  }
  for (std::size_t s = 0; s < seats.size(); ++s) {
    EXPECT_EQ(next[seats[s]], sent[s]);
  }
}

TEST(Mailbox, WhatDoesNotFitWaitsForRoom) {
  Post post;
  for (std::size_t i = 0; i < 3 * kRing + 5; ++i) {
    post.put(fmt::format("{}", i));
  }
  for (std::size_t rounds = 1; rounds <= 3; ++rounds) {
    EXPECT_TRUE(post.take());
    EXPECT_EQ(post.letters.size(), rounds * kRing);
    EXPECT_EQ(post.rooms.size(), rounds) << "a sender that waits is told once";
    post.put(fmt::format("{}", 3 * kRing + 4 + rounds));  // behind those that wait
  }
  EXPECT_TRUE(post.take());
  EXPECT_EQ(post.rooms.size(), 3u) << "nobody waits any more";
  ASSERT_EQ(post.letters.size(), 3 * kRing + 8);
  for (std::size_t i = 0; i < post.letters.size(); ++i) {
    EXPECT_EQ(post.letters[i].second, fmt::format("{}", i));
  }
}

TEST(Mailbox, IsCopiedAtOnceAlsoWhileItWaits) {
  Post post;
  std::string text;
  for (std::size_t i = 0; i < 2 * kRing; ++i) {
    text = fmt::format("{:04}", i);
    post.put(text);
  }
  text = "????";
  post.take();
  post.sender().flush();
  post.take();
  ASSERT_EQ(post.letters.size(), 2 * kRing);
  for (std::size_t i = 0; i < post.letters.size(); ++i) {
    EXPECT_EQ(post.letters[i].second, fmt::format("{:04}", i));
  }
}

TEST(Mailbox, CarriesTheLargestPacketAndEmptyOnes) {
  Post post;
  std::vector<std::string> sent;
  for (std::size_t i = 0; i < 2 * kRing; ++i) {
    sent.emplace_back(i % 3 == 0 ? 0 : kMaxPacket, static_cast<char>('a' + i % 26));
    post.put(sent.back());
  }
  post.take();
  post.sender().flush();
  post.take();
  ASSERT_EQ(post.letters.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(post.letters[i].second, sent[i]);
  }
}

// --- Sleeping --------------------------------------------------------------------------------

TEST(MailboxBell, RingsOnlyForASleeper) {
  Post post;
  post.put("nobody sleeps");
  EXPECT_FALSE(readable(post.inbox.file()));
  EXPECT_FALSE(post.inbox.about_to_sleep()) << "there is mail already";
  post.take();
  EXPECT_TRUE(post.inbox.about_to_sleep());
  EXPECT_FALSE(readable(post.inbox.file()));
  post.put("wake up");
  EXPECT_TRUE(readable(post.inbox.file()));
  post.inbox.heard();
  post.inbox.awake();
  post.take();
  post.put("nobody sleeps");
  post.take();
  EXPECT_TRUE(post.inbox.about_to_sleep());
  EXPECT_FALSE(readable(post.inbox.file())) << "it was heard";
  post.inbox.awake();
}

// A bell that is rung for room, or that rings when the sleeper has just got up by itself, ends one
// sleep and not every later one.
TEST(MailboxBell, EndsOneSleep) {
  Post post;
  for (const bool asleep : {true, false}) {
    if (asleep) {
      ASSERT_TRUE(post.inbox.about_to_sleep());
    }
    post.sender().ring();
    if (!asleep) {
      ASSERT_TRUE(post.inbox.about_to_sleep());
    }
    EXPECT_TRUE(readable(post.inbox.file()));
    post.inbox.heard();
    post.inbox.awake();
    EXPECT_TRUE(post.inbox.about_to_sleep());
    EXPECT_FALSE(readable(post.inbox.file())) << "it was heard";
    post.inbox.awake();
  }
}

// --- Two threads -----------------------------------------------------------------------------

// One of two that write to each other, as an endpoint does it.
class Friend {
 public:
  void meet(Friend& other, std::size_t seat) {
    view_.emplace_back(std::move(PoolView::open(other.pool_.address(), seat).value()));
  }
  void put(std::uint64_t number) {
    std::vector<std::byte> packet(sizeof(number) + number % 100);
    std::memcpy(packet.data(), &number, sizeof(number));
    view_[0].outbox().put(packet);
  }
  // Sleeps until `count` packets have come; false if a sleep lasted for five seconds.
  bool wait_for(std::uint64_t count) {
    while (true) {
      pool_.inbox().take(
          [this](std::size_t, std::span<const std::byte> packet) {
            std::uint64_t number = 0;
            std::memcpy(&number, packet.data(), sizeof(number));
            EXPECT_EQ(number, next_++);
            EXPECT_EQ(packet.size(), sizeof(number) + number % 100);
          },
          [this](std::size_t) { view_[0].outbox().ring(); });
      view_[0].outbox().flush();
      if (next_ >= count) {
        return true;
      }
      if (pool_.inbox().about_to_sleep()) {
        ++sleeps;
        if (!readable(pool_.inbox().file(), 5000)) {
          return false;
        }
        pool_.inbox().heard();
      }
      pool_.inbox().awake();
    }
  }
  int sleeps = 0;

 private:
  Pool pool_{4096};
  std::vector<PoolView> view_;
  std::uint64_t next_ = 0;
};

// Each sends a burst, often more than a ring holds, and waits for the burst of the other.
TEST(MailboxThreads, NobodySleepsThroughAPacketOrThroughRoom) {
  constexpr std::uint64_t kRounds = 40000;
  std::vector<Friend> friends(2);
  friends[0].meet(friends[1], 3);
  friends[1].meet(friends[0], 3);
  const auto run = [&](std::size_t self) {
    RandomSequence sizes{Random(5).stream(self)};
    RandomSequence theirs{Random(5).stream(1 - self)};
    std::uint64_t sent = 0;
    std::uint64_t expected = 0;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t burst = sizes.below(sizes.below(8) == 0 ? 60 : 3);
      for (std::uint64_t i = 0; i < burst; ++i) {
        friends[self].put(sent++);
      }
      expected += theirs.below(theirs.below(8) == 0 ? 60 : 3);
      if (!friends[self].wait_for(expected)) {
        ADD_FAILURE() << "worker " << self << " slept for five seconds in round " << round;
        return;
      }
    }
    // What still waits for room has to leave.
    friends[self].put(sent++);
    EXPECT_TRUE(friends[self].wait_for(expected + 1));
  };
  std::jthread other([&] { run(1); });
  run(0);
  other.join();
  EXPECT_GT(friends[0].sleeps + friends[1].sleeps, 0);
}

}  // namespace
}  // namespace starling::comm
