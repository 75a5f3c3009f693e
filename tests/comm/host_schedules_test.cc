// Real endpoints under thousands of schedules: sends, receives, cancellations, timers, messages and
// broken connections at random, delivered in an order that is drawn as well. A failing seed is
// replayed by its number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "tests/comm/host_office.h"

namespace starling::comm {
namespace {

constexpr std::size_t kGuard = 16;
constexpr std::byte kUnwritten{0x11};
constexpr std::byte kPoison{0xEE};
constexpr std::size_t kTags = 3;

struct Sent {
  Rank from, to;
  Tag tag;
  std::uint64_t number;
  Blob data;                      // in the pool, or
  std::vector<std::byte> own{};   // here
  std::vector<std::byte> text{};  // what it sends
  Slip* slip = nullptr;
  bool received = false;
};

struct Received {
  Rank at, from;
  Tag tag;
  std::size_t size;
  std::vector<std::byte> memory{};  // with guards around it
  std::vector<std::byte> found{};   // when it ended
  Slip* slip = nullptr;
};

std::vector<std::byte> text_of(std::uint64_t number, std::size_t size) {
  std::vector<std::byte> text(size);
  for (std::size_t i = 0; i < size; ++i) {
    text[i] = static_cast<std::byte>((number + 1) * 0x9E3779B97F4A7C15u >> (i % 8 * 8) ^ i / 8);
  }
  return text;
}

class Play {
 public:
  Play(OfficeOptions options, bool breaks)
      : options_(std::move(options)),
        breaks_(breaks),
        draw_(Random(options_.seed).stream(1)),
        office_(options_) {}

  void run() {
    for (std::uint64_t steps = 20 + draw_.below(150); steps > 0; --steps) {
      act();
      for (std::uint64_t i = draw_.below(4); i > 0; --i) {
        office_.net.step(office_.draw);
      }
      if (draw_.below(2) == 0) {
        office_[draw_.below(office_.size())].look();
      }
    }
    office_.run();
    expect_no_hang();
    cancel_the_rest();
    office_.run();
    expect_ends();
    expect_messages();
    expect_whole_pools();
  }

 private:
  bool shares(Rank a, Rank b) const {
    return options_.views && options_.nodes[a.index()] == options_.nodes[b.index()];
  }
  static std::pair<Rank, Rank> pair_of(Rank a, Rank b) { return {std::min(a, b), std::max(a, b)}; }
  bool severed(Rank a, Rank b) const { return severed_.contains(pair_of(a, b)); }
  Rank any() { return Rank{static_cast<std::uint32_t>(draw_.below(office_.size()))}; }
  Rank other_than(Rank rank) {
    return Rank{static_cast<std::uint32_t>((rank.value + 1 + draw_.below(office_.size() - 1)) %
                                           office_.size())};
  }
  // Mostly what the other side expects too.
  std::size_t size_of(Tag tag) {
    return draw_.below(20) == 0 ? 8 + draw_.below(100) : 8 + tag * 700;
  }

  void act() {
    const Rank self = any();
    const Rank peer = other_than(self);
    const std::uint64_t what = draw_.below(100);
    if (what < 35) {
      send(self, peer, draw_.below(kTags));
    } else if (what < 70) {
      receive(self, peer, draw_.below(kTags));
    } else if (what < 85) {
      cancel_any();
    } else if (what < 95) {
      say(self, peer);
    } else if (what < 98) {
      const Duration time(draw_.below(2) == 0 ? 0 : 3'600'000'000'000);
      timers_.emplace_back(self, &office_[self.index()].timer_in(time));
    } else if (breaks_ && draw_.below(3) == 0 && !severed(self, peer)) {
      severed_.insert(pair_of(self, peer));
      office_.net.sever(self, peer);
    }
  }

  void send(Rank from, Rank to, Tag tag) {
    for (const Sent& sent : sent_) {
      if (sent.from == from && sent.to == to && sent.tag == tag && sent.slip->pending()) {
        return;
      }
    }
    Sent& sent = sent_.emplace_back(Sent{from, to, tag, sent_.size(), {}});
    const std::size_t size = size_of(tag);
    sent.text = text_of(sent.number, size);
    Desk& desk = office_[from.index()];
    const auto shared = draw_.below(2) == 0 ? desk.pool().try_share(size) : std::nullopt;
    if (shared) {
      sent.data = *shared;
    } else {
      sent.own.resize(size);
      sent.data = {sent.own.data(), size};
    }
    std::memcpy(sent.data.data, sent.text.data(), size);
    sent.slip = &desk.send(to, tag, sent.data);
    // From its end on the buffer is the sender's again.
    sent.slip->then = [&sent, &desk, shared] {
      std::fill_n(sent.data.data, sent.data.size, kPoison);
      if (shared) {
        desk.pool().unshare(*shared);
      }
    };
  }

  void receive(Rank at, Rank from, Tag tag) {
    for (const Received& received : received_) {
      if (received.at == at && received.from == from && received.tag == tag &&
          received.slip->pending()) {
        return;
      }
    }
    Received& received = received_.emplace_back(Received{at, from, tag, size_of(tag)});
    received.memory.assign(received.size + 2 * kGuard, kUnwritten);
    const Blob into{received.memory.data() + kGuard, received.size};
    received.slip = &office_[at.index()].receive(from, tag, into);
    received.slip->then = [&received, into] {
      received.found.assign(into.data, into.data + into.size);
      std::fill_n(into.data, into.size, kPoison);
    };
  }

  void cancel_any() {
    std::vector<std::pair<Rank, Slip*>> pending = pending_slips();
    if (!pending.empty()) {
      const auto [rank, slip] = pending[draw_.below(pending.size())];
      office_[rank.index()].cancel(*slip);
    }
  }
  void cancel_the_rest() {
    for (const auto& [rank, slip] : pending_slips()) {
      office_[rank.index()].cancel(*slip);
    }
  }
  std::vector<std::pair<Rank, Slip*>> pending_slips() const {
    std::vector<std::pair<Rank, Slip*>> pending = timers_;
    for (const Sent& sent : sent_) {
      pending.emplace_back(sent.from, sent.slip);
    }
    for (const Received& received : received_) {
      pending.emplace_back(received.at, received.slip);
    }
    std::erase_if(pending, [](const auto& one) { return !one.second->pending(); });
    return pending;
  }

  void say(Rank from, Rank to) {
    office_[from.index()].control(to, fmt::format("{}", said_[{from, to}]++));
  }

  // Everything that could happen has happened: nobody waits for what is there.
  void expect_no_hang() const {
    for (const Sent& sent : sent_) {
      if (severed(sent.from, sent.to)) {
        EXPECT_FALSE(sent.slip->pending()) << "a send to the lost";
      }
      for (const Received& received : received_) {
        EXPECT_FALSE(sent.slip->pending() && received.slip->pending() && received.at == sent.to &&
                     received.from == sent.from && received.tag == sent.tag)
            << fmt::format("tag {} from {} to {} hangs", sent.tag, sent.from, sent.to);
      }
    }
    for (const Received& received : received_) {
      if (severed(received.at, received.from)) {
        EXPECT_FALSE(received.slip->pending()) << "a receive from the lost";
      }
    }
  }

  void expect_ends() {
    for (const auto& [rank, timer] : timers_) {
      EXPECT_EQ(timer->told, 1);
    }
    for (const Sent& sent : sent_) {
      EXPECT_EQ(sent.slip->told, 1);
      EXPECT_TRUE(sent.slip->how != Finish::Lost || severed(sent.from, sent.to));
    }
    for (const Received& received : received_) {
      EXPECT_EQ(received.slip->told, 1);
      EXPECT_TRUE(received.slip->how != Finish::Lost || severed(received.at, received.from));
      expect_untouched(received);
      if (received.slip->how == Finish::Done) {
        expect_sent(received);
      }
    }
  }

  static void expect_untouched(const Received& received) {
    const auto is = [](std::byte b) { return [b](std::byte c) { return b == c; }; };
    const auto begin = received.memory.begin() + kGuard;
    const auto end = received.memory.end() - kGuard;
    EXPECT_TRUE(std::all_of(begin, end, is(kPoison))) << "written after its end";
    EXPECT_TRUE(std::all_of(received.memory.begin(), begin, is(kUnwritten)) &&
                std::all_of(end, received.memory.end(), is(kUnwritten)))
        << "written outside";
  }

  // What was received is what one send sent, and no other receive got it.
  void expect_sent(const Received& received) {
    for (Sent& sent : sent_) {
      if (sent.received || sent.to != received.at || sent.from != received.from ||
          sent.tag != received.tag || sent.text.size() != received.slip->bytes ||
          (received.slip->bytes == received.size && sent.text != received.found)) {
        continue;
      }
      if (sent.slip->how == Finish::Cancelled && !shares(sent.from, sent.to) &&
          received.slip->bytes == received.size) {
        ADD_FAILURE() << "send " << sent.number << " was cancelled, and arrived";
      }
      sent.received = true;
      return;
    }
    ADD_FAILURE() << fmt::format("nobody sent {} bytes of tag {} from {} to {}",
                                 received.slip->bytes, received.tag, received.from, received.at);
  }

  void expect_messages() {
    for (std::uint32_t to = 0; to < office_.size(); ++to) {
      std::map<Rank, int> heard;
      for (const Desk::Letter& letter : office_[to].letters) {
        ASSERT_EQ(letter.text, fmt::format("{}", heard[letter.from]++));
      }
      std::map<Rank, int> losses;
      for (const Rank peer : office_[to].lost) {
        EXPECT_TRUE(severed(Rank{to}, peer));
        EXPECT_EQ(++losses[peer], 1) << "told twice";
      }
      for (std::uint32_t from = 0; from < office_.size(); ++from) {
        if (from == to) {
          continue;
        }
        const bool lost = severed(Rank{from}, Rank{to});
        EXPECT_EQ(losses.contains(Rank{from}), lost);
        EXPECT_TRUE(lost || heard[Rank{from}] == said_[std::pair(Rank{from}, Rank{to})])
            << "a message was lost";
      }
    }
  }

  // All copies that were made for sends have been given back.
  void expect_whole_pools() {
    for (std::size_t r = 0; r < office_.size(); ++r) {
      const auto all = office_[r].pool().try_share(options_.pool_bytes);
      EXPECT_TRUE(all) << "worker " << r << " has lost memory of its pool";
    }
  }

  OfficeOptions options_;
  bool breaks_;
  RandomSequence draw_;
  std::list<Sent> sent_;
  std::list<Received> received_;
  std::vector<std::pair<Rank, Slip*>> timers_;
  std::map<std::pair<Rank, Rank>, int> said_;
  std::set<std::pair<Rank, Rank>> severed_;
  Office office_;  // last: its end tells what is pending
};

void play(std::uint64_t seeds, const std::vector<OfficeOptions>& offices) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    OfficeOptions options = offices[seed % offices.size()];
    options.seed = seed;
    Play(options, /*breaks=*/seed % 4 == 3).run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

constexpr std::uint64_t kSeeds = 2000;
constexpr std::size_t kRoom = 1 << 20;

TEST(HostSchedules, OverTheWire) { play(kSeeds, {apart(2), apart(3)}); }

// In small pools copies for sends find no room now and then.
TEST(HostSchedules, FromPoolToPool) {
  play(kSeeds, {together(2), together(3), {.nodes = {0, 0}, .pool_bytes = 8192}});
}

TEST(HostSchedules, BothWaysAtOnce) {
  play(kSeeds / 2,
       {{.nodes = {0, 0, 1}, .pool_bytes = kRoom}, {.nodes = {0, 1, 1, 0}, .pool_bytes = 8192}});
}

// Where mapping was refused, workers of one host use the wire.
TEST(HostSchedules, OnOneHostWithoutViews) {
  play(kSeeds / 10, {{.nodes = {0, 0, 0}, .views = false}});
}

}  // namespace
}  // namespace starling::comm
