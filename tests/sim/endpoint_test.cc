// The contract of comm/endpoint.h, held against the virtual twin through the interface alone.
#include "starling/comm/endpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "starling/base/error.h"
#include "tests/sim/desk.h"

namespace starling::sim {
namespace {

using comm::Finish;

NetworkOptions jittery(std::size_t workers, std::uint64_t seed, double jitter = 1e-3) {
  return {.ports = {.workers = workers}, .jitter = jitter, .seed = seed};
}

// Waits at one endpoint until `t`, whatever happens meanwhile.
void wait_until(Desk& desk, Time t) {
  while (desk.endpoint().now() < t) {
    desk.endpoint().wait(t);
  }
}

// --- (1) Control messages --------------------------------------------------------------------

TEST(EndpointControl, ArrivesInOrderPerPairAlsoUnderHeavyJitter) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Office office(jittery(3, seed));
    for (int i = 0; i < 200; ++i) {
      office[0].control(Rank{2}, fmt::format("{}", i));
      office[1].control(Rank{2}, fmt::format("{}", i));
      if (i % 20 == 0) {
        office[0].endpoint().wait(office[0].endpoint().now() + Duration(10'000));
      }
    }
    office.run();
    std::array<int, 2> next = {0, 0};
    for (const Desk::Letter& letter : office[2].letters) {
      ASSERT_EQ(letter.text, fmt::format("{}", next[letter.from.index()]++)) << "seed " << seed;
    }
    EXPECT_EQ(next[0], 200);
    EXPECT_EQ(next[1], 200);
  }
}

TEST(EndpointControl, JitterChangesTheOrderBetweenSenders) {
  bool swapped = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Office office(jittery(3, seed));
    office[0].control(Rank{2}, "first");
    office[1].control(Rank{2}, "second");
    office.run();
    ASSERT_EQ(office[2].letters.size(), 2u);
    swapped = swapped || office[2].letters[0].text == "second";
  }
  EXPECT_TRUE(swapped);
}

TEST(EndpointControl, CarriesUpTo4096BytesAndEmptyOnes) {
  Office office(2);
  std::string longest(comm::kMaxControl, '\0');
  for (std::size_t i = 0; i < longest.size(); ++i) {
    longest[i] = static_cast<char>(i * 7);
  }
  office[0].control(Rank{1}, longest);
  office[0].control(Rank{1}, "");
  EXPECT_THROW(office[0].endpoint().control(
                   Rank{1}, std::vector<std::byte>(comm::kMaxControl + 1, std::byte{})),
               Error);
  office.run();
  ASSERT_EQ(office[1].letters.size(), 2u);
  EXPECT_EQ(office[1].letters[0].text, longest);
  EXPECT_EQ(office[1].letters[0].from, Rank{0});
  EXPECT_EQ(office[1].letters[1].text, "");
}

TEST(EndpointControl, IsCopiedAtOnce) {
  Office office(2);
  std::string text = "before";
  office[0].control(Rank{1}, text);
  text = "after!";
  office.run();
  ASSERT_EQ(office[1].letters.size(), 1u);
  EXPECT_EQ(office[1].letters[0].text, "before");
}

TEST(EndpointControl, ToOneselfOrToNobodyIsABug) {
  Office office(2);
  EXPECT_THROW(office[0].endpoint().control(Rank{0}, {}), Error);
  EXPECT_THROW(office[0].endpoint().control(Rank{2}, {}), Error);
}

// --- (2) Bulk data ---------------------------------------------------------------------------

TEST(EndpointBulk, AReceiveTakesTheMessageOfItsPeerAndTag) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Office office(jittery(3, seed));
    RandomSequence draw{Random(seed).stream(9)};
    // Two senders, five tags; posted in any order, before or after the data came.
    struct Message {
      std::uint32_t from;
      comm::Tag tag;
      std::string data;
      std::string into;
      Slip* sent = nullptr;
      Slip* received = nullptr;
    };
    std::vector<Message> messages;
    for (std::uint32_t from : {0u, 1u}) {
      for (comm::Tag tag = 0; tag < 5; ++tag) {
        const std::string data = fmt::format("tag {} of {}", tag, from);
        messages.push_back({from, tag << 50 | 7, data, std::string(data.size(), '?')});
      }
    }
    std::vector<std::pair<Message*, bool>> acts;
    for (Message& m : messages) {
      acts.emplace_back(&m, true);
      acts.emplace_back(&m, false);
    }
    while (!acts.empty()) {
      const std::size_t i = draw.below(acts.size());
      const auto [m, sends] = acts[i];
      acts.erase(acts.begin() + static_cast<std::ptrdiff_t>(i));
      if (sends) {
        m->sent = &office[m->from].send(Rank{2}, m->tag, m->data);
      } else {
        m->received = &office[2].receive(Rank{m->from}, m->tag, m->into);
      }
      if (draw.below(2) == 0) {
        office[2].endpoint().wait(office[2].endpoint().now() +
                                  Duration(static_cast<std::int64_t>(draw.below(2'000'000))));
      }
    }
    office.run();
    for (const Message& m : messages) {
      ASSERT_EQ(m.into, m.data) << "seed " << seed;
      ASSERT_TRUE(m.sent->done() && m.received->done()) << "seed " << seed;
      ASSERT_EQ(m.received->bytes, m.data.size());
    }
  }
}

TEST(EndpointBulk, JitterChangesTheOrderBetweenSenders) {
  bool swapped = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Office office(jittery(3, seed));
    const Slip& first = office[2].receive(Rank{0}, 1, weightless(100));
    const Slip& second = office[2].receive(Rank{1}, 1, weightless(100));
    office[0].send(Rank{2}, 1, weightless(100));
    office[1].send(Rank{2}, 1, weightless(100));
    office.run();
    ASSERT_TRUE(first.done() && second.done());
    swapped = swapped || second.at < first.at;
  }
  EXPECT_TRUE(swapped);
}

TEST(EndpointBulk, ASendIsDoneOnlyWhenAReceiveTookIt) {
  Office office(2);
  const Slip& sent = office[0].send(Rank{1}, 5, "data");
  office.run();
  EXPECT_TRUE(sent.pending()) << "arrived, but nobody asked for it";
  std::string other(4, '?');
  const Slip& wrong = office[1].receive(Rank{0}, 6, other);
  office.run();
  EXPECT_TRUE(sent.pending()) << "another tag";
  EXPECT_TRUE(wrong.pending());
  std::string into(4, '?');
  const Slip& received = office[1].receive(Rank{0}, 5, into);
  EXPECT_TRUE(received.pending());
  office.run();
  EXPECT_TRUE(sent.done());
  EXPECT_TRUE(received.done());
  EXPECT_EQ(into, "data");
  EXPECT_EQ(other, "????");
}

TEST(EndpointBulk, TheSizeThatWasSentIsReported) {
  Office office(2);
  std::string shorter(3, '?');
  std::string longer(8, '?');
  const Slip& cut = office[1].receive(Rank{0}, 1, shorter);
  const Slip& part = office[1].receive(Rank{0}, 2, longer);
  office[0].send(Rank{1}, 1, "abcde");
  office[0].send(Rank{1}, 2, "abcde");
  office.run();
  EXPECT_TRUE(cut.done());
  EXPECT_EQ(cut.bytes, 5u);
  EXPECT_EQ(shorter, "abc") << "never more than there is room for";
  EXPECT_TRUE(part.done());
  EXPECT_EQ(part.bytes, 5u);
  EXPECT_EQ(longer, "abcde???");
}

TEST(EndpointBulk, WeightlessDataTakesItsTimeAndTouchesNothing) {
  Office office(2);
  std::string into(1000, '?');
  const Slip& received = office[1].receive(Rank{0}, 1, into);
  const Slip& sent = office[0].send(Rank{1}, 1, weightless(1000));
  office[0].send(Rank{1}, 2, into);
  const Slip& nowhere = office[1].receive(Rank{0}, 2, weightless(1000));
  office.run();
  EXPECT_TRUE(received.done() && sent.done() && nowhere.done());
  EXPECT_EQ(received.bytes, 1000u);
  EXPECT_EQ(into, std::string(1000, '?'));
  EXPECT_NEAR(received.seconds(), 5e-6 + 1e-7, 1e-12);
}

TEST(EndpointBulk, TheSameTagServesAgainOnceItIsFree) {
  Office office(2);
  for (int i = 0; i < 20; ++i) {
    const std::string data = fmt::format("{:03}", i);
    std::string into(3, '?');
    const Slip& sent = office[0].send(Rank{1}, 1, data);
    const Slip& received = office[1].receive(Rank{0}, 1, into);
    office.run();
    ASSERT_TRUE(sent.done() && received.done());
    ASSERT_EQ(into, data);
  }
}

TEST(EndpointBulk, TwoOfTheSameTagAtOnceAreABug) {
  Office office(2);
  office[1].receive(Rank{0}, 1, weightless(1));
  EXPECT_THROW(office[1].receive(Rank{0}, 1, weightless(1)), Error);
}

TEST(EndpointBulk, EmptyMessagesAndMessagesToOneselfAreBugs) {
  Office office(2);
  EXPECT_THROW(office[0].send(Rank{1}, 1, weightless(0)), Error);
  EXPECT_THROW(office[0].receive(Rank{1}, 1, weightless(0)), Error);
  EXPECT_THROW(office[0].send(Rank{0}, 1, weightless(1)), Error);
  EXPECT_THROW(office[0].receive(Rank{7}, 1, weightless(1)), Error);
}

// --- Cancelling ------------------------------------------------------------------------------

TEST(EndpointCancel, APendingReceiveEndsAsCancelledAndItsTagIsFree) {
  Office office(2);
  std::string into(4, '?');
  Slip& receive = office[1].receive(Rank{0}, 1, into);
  office[1].cancel(receive);
  EXPECT_TRUE(receive.pending()) << "told only from the loop";
  office.run();
  EXPECT_TRUE(receive.ended(Finish::Cancelled));
  const Slip& sent = office[0].send(Rank{1}, 1, "data");
  office.run();
  EXPECT_TRUE(sent.pending());
  EXPECT_EQ(into, "????");
  const Slip& again = office[1].receive(Rank{0}, 1, into);
  office.run();
  EXPECT_TRUE(sent.done() && again.done());
  EXPECT_EQ(into, "data");
}

TEST(EndpointCancel, ASendInFlightNeverArrives) {
  Office office(2);
  std::string into(4, '?');
  const Slip& receive = office[1].receive(Rank{0}, 1, into);
  Slip& send = office[0].send(Rank{1}, 1, "data");
  office[0].cancel(send);
  office.run();
  EXPECT_TRUE(send.ended(Finish::Cancelled));
  EXPECT_TRUE(receive.pending());
  const Slip& next = office[0].send(Rank{1}, 1, "next");
  office.run();
  EXPECT_TRUE(next.done() && receive.done());
  EXPECT_EQ(into, "next");
}

TEST(EndpointCancel, ASendInTheQueueOfItsCardNeverArrives) {
  Office office(2);
  office[0].send(Rank{1}, 1, weightless(1'000'000));
  Slip& queued = office[0].send(Rank{1}, 2, "data");
  const Slip& third = office[0].send(Rank{1}, 3, "third");
  office[0].cancel(queued);
  std::string into(4, '?');
  const Slip& receive = office[1].receive(Rank{0}, 2, into);
  const Slip& taken = office[1].receive(Rank{0}, 3, weightless(5));
  office.run();
  EXPECT_TRUE(queued.ended(Finish::Cancelled));
  EXPECT_TRUE(receive.pending());
  EXPECT_EQ(into, "????");
  EXPECT_TRUE(third.done() && taken.done()) << "the queue goes on";
}

TEST(EndpointCancel, ASendThatWaitsAtTheReceiverIsTakenBack) {
  Office office(2);
  Slip& send = office[0].send(Rank{1}, 1, "data");
  office.run();
  ASSERT_TRUE(send.pending());
  office[0].cancel(send);
  office.run();
  EXPECT_TRUE(send.ended(Finish::Cancelled));
  std::string into(4, '?');
  const Slip& receive = office[1].receive(Rank{0}, 1, into);
  office.run();
  EXPECT_TRUE(receive.pending());
  EXPECT_EQ(into, "????");
}

TEST(EndpointCancel, ATimerEndsAsCancelledAndNeverRings) {
  Office office(1);
  Slip& timer = office[0].timer(time_of(1));
  office[0].cancel(timer);
  office[0].endpoint().wait(time_of(5));
  EXPECT_TRUE(timer.ended(Finish::Cancelled));
  EXPECT_EQ(timer.at, SimTime{}) << "at once";
  office.run();
  EXPECT_EQ(timer.told, 1);
}

TEST(EndpointCancel, WhatHasEndedOrIsNotOursCannotBeCancelled) {
  Office office(2);
  Slip& timer = office[0].timer(time_of(0));
  office.run();
  ASSERT_TRUE(timer.done());
  EXPECT_THROW(office[0].endpoint().cancel(timer), Error);
  Slip& theirs = office[1].timer(time_of(9));
  EXPECT_THROW(office[0].endpoint().cancel(theirs), Error);
}

TEST(EndpointCancel, TwiceIsOnce) {
  Office office(2);
  Slip& receive = office[1].receive(Rank{0}, 1, weightless(1));
  office[1].cancel(receive);
  office[1].cancel(receive);
  office.run();
  EXPECT_TRUE(receive.ended(Finish::Cancelled));
}

// Thousands of sends, receives, timers and cancellations at random; every one is told once.
TEST(EndpointCancel, EveryCompletionIsToldExactlyOnce) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Office office(jittery(4, seed, 1e-5));
    RandomSequence draw{Random(seed)};
    std::vector<std::pair<std::uint32_t, Slip*>> all;
    for (comm::Tag tag = 0; tag < 300; ++tag) {
      const auto from = static_cast<std::uint32_t>(draw.below(4));
      const auto to = static_cast<std::uint32_t>((from + 1 + draw.below(3)) % 4);
      const std::size_t size = 1 + draw.below(20'000);
      all.emplace_back(from, &office[from].send(Rank{to}, tag, weightless(size)));
      all.emplace_back(to, &office[to].receive(Rank{from}, tag, weightless(size)));
      all.emplace_back(from, &office[from].timer(time_of(1e-3 * draw.uniform())));
      const auto [rank, slip] = all[draw.below(all.size())];
      if (slip->pending()) {
        office[rank].cancel(*slip);
      }
      if (draw.below(4) == 0) {
        office[from].endpoint().wait(office[from].endpoint().now() + Duration(5'000));
      }
    }
    office.run();
    for (const auto& [rank, slip] : all) {
      ASSERT_LE(slip->told, 1) << "seed " << seed;
      if (slip->pending()) {
        office[rank].cancel(*slip);  // its partner was cancelled
      }
    }
    office.run();
    for (const auto& [rank, slip] : all) {
      ASSERT_EQ(slip->told, 1) << "seed " << seed;
    }
  }
}

// --- Never from inside a call ----------------------------------------------------------------

// Calls everything from inside everything it is told.
class Busy final : public comm::Endpoint::Listener, private comm::Completion {
 public:
  explicit Busy(Network& network, Rank self, Rank other)
      : endpoint_(network.endpoint(self)), other_(other), desk_(network, self) {
    endpoint_.listen(*this);
  }
  void start() { endpoint_.timer(time_of(0), *this); }

  void on_control(Rank from, std::span<const std::byte>) override {
    EXPECT_FALSE(desk_.calling());
    ++heard;
    answer(from);
  }
  bool needs(Rank) const override { return false; }
  void on_lost(Rank peer) override {
    EXPECT_FALSE(desk_.calling());
    ++losses;
    slips.push_back(&desk_.send(peer, 999, weightless(1)));
    slips.push_back(&desk_.receive(peer, 998, weightless(1)));
    desk_.control(peer, "anybody there?");
  }
  int heard = 0;
  int losses = 0;
  std::vector<Slip*> slips;

 private:
  void finish(Finish, std::size_t) override { answer(other_); }
  void answer(Rank to) {
    if (rounds_++ >= 50) {
      return;
    }
    const comm::Tag tag = static_cast<comm::Tag>(rounds_);
    desk_.control(to, "x");
    slips.push_back(&desk_.send(to, tag, weightless(10)));
    slips.push_back(&desk_.receive(to, tag, weightless(10)));
    slips.push_back(&desk_.timer(endpoint_.now()));
    Slip& cancelled = desk_.timer(time_of(100));
    desk_.cancel(cancelled);
    slips.push_back(&cancelled);
    desk_.notify();
  }

  comm::Endpoint& endpoint_;
  Rank other_;
  Desk desk_;
  int rounds_ = 0;
};

TEST(EndpointCallbacks, NobodyIsCalledBackWhileCalling) {
  Network network(jittery(3, 1, 1e-6));
  Busy a(network, Rank{0}, Rank{1});
  Busy b(network, Rank{1}, Rank{0});
  a.start();
  b.start();
  while (network.step()) {
  }
  EXPECT_GE(a.heard, 25);
  EXPECT_GE(b.heard, 25);
  network.die(Rank{2});
  while (network.step()) {
  }
  EXPECT_EQ(a.losses, 1);
  EXPECT_EQ(b.losses, 1);
  for (const Busy* busy : {&a, &b}) {
    for (const Slip* slip : busy->slips) {
      EXPECT_LE(slip->told, 1);
    }
    EXPECT_TRUE(busy->slips[busy->slips.size() - 1]->ended(Finish::Lost));
    EXPECT_TRUE(busy->slips[busy->slips.size() - 2]->ended(Finish::Lost));
  }
}

// --- (3) and (4) Time ------------------------------------------------------------------------

TEST(EndpointTime, TimersRingInTheOrderOfTheirTimes) {
  Office office(1);
  std::vector<Slip*> slips;
  for (double t : {3.0, 1.0, 2.0, 1.0}) {
    slips.push_back(&office[0].timer(time_of(t)));
  }
  wait_until(office[0], time_of(10));
  EXPECT_EQ(slips[0]->seconds(), 3);
  EXPECT_EQ(slips[1]->seconds(), 1);
  EXPECT_EQ(slips[2]->seconds(), 2);
  EXPECT_EQ(slips[3]->seconds(), 1);
  EXPECT_EQ(office[0].told(), 4u);
}

TEST(EndpointTime, ATimerInThePastRingsSoonButNotAtOnce) {
  Office office(1);
  office[0].endpoint().wait(time_of(5));
  const Slip& late = office[0].timer(time_of(1));
  EXPECT_TRUE(late.pending());
  office[0].endpoint().wait(time_of(100));
  EXPECT_TRUE(late.done());
  EXPECT_EQ(office[0].endpoint().now(), time_of(5));
}

TEST(EndpointTime, WaitReturnsAtUntilWhenNothingHappens) {
  Office office(2);
  EXPECT_EQ(office[0].endpoint().now(), Time{});
  office[0].endpoint().wait(time_of(2));
  EXPECT_EQ(office[0].endpoint().now(), time_of(2));
  office[0].endpoint().wait(time_of(1));
  EXPECT_EQ(office[0].endpoint().now(), time_of(2)) << "time never runs backwards";
  // What happens elsewhere, or later, does not end it.
  office[1].timer(time_of(3));
  const Slip& later = office[0].timer(time_of(9));
  office[0].endpoint().wait(time_of(4));
  EXPECT_EQ(office[0].endpoint().now(), time_of(4));
  EXPECT_EQ(office[1].told(), 1u);
  EXPECT_TRUE(later.pending());
}

TEST(EndpointTime, WaitReturnsWhenSomethingHappened) {
  Office office(2);
  office[1].control(Rank{0}, "hello");
  office[0].endpoint().wait(time_of(100));
  EXPECT_LT(office[0].endpoint().now(), time_of(1));
  EXPECT_EQ(office[0].letters.size(), 1u);
}

TEST(EndpointTime, NotifyWakesTheNextWait) {
  Office office(2);
  office[0].notify();
  office[0].endpoint().wait(time_of(100));
  EXPECT_EQ(office[0].endpoint().now(), Time{});
  office[0].endpoint().wait(time_of(7));
  EXPECT_EQ(office[0].endpoint().now(), time_of(7)) << "only once";
  office[1].notify();
  office[0].endpoint().wait(time_of(8));
  EXPECT_EQ(office[0].endpoint().now(), time_of(8)) << "only its own";
}

// --- (5) Loss --------------------------------------------------------------------------------

TEST(EndpointLoss, PendingSendsAndReceivesEndAsLost) {
  Office office(3);
  const Slip& receive = office[0].receive(Rank{2}, 1, weightless(8));
  const Slip& send = office[0].send(Rank{2}, 2, weightless(8));
  const Slip& other = office[0].receive(Rank{1}, 1, weightless(8));
  const Slip& timer = office[0].timer(time_of(1));
  wait_until(office[0], time_of(0.1));
  office.network.die(Rank{2});
  EXPECT_TRUE(receive.pending());
  office.run();
  EXPECT_TRUE(receive.ended(Finish::Lost));
  EXPECT_TRUE(send.ended(Finish::Lost));
  EXPECT_TRUE(other.pending()) << "worker 1 lives";
  EXPECT_TRUE(timer.done());
}

TEST(EndpointLoss, EveryWorkerIsToldOnceAlsoOfPeersNeverSpokenTo) {
  Office office(5);
  office.network.die(Rank{3});
  office.network.die(Rank{3});
  office.run();
  office.network.die(Rank{1});
  office.run();
  EXPECT_EQ(office[0].lost, (std::vector<Rank>{Rank{3}, Rank{1}}));
  EXPECT_EQ(office[1].lost, (std::vector<Rank>{Rank{3}}));
  EXPECT_EQ(office[2].lost, (std::vector<Rank>{Rank{3}, Rank{1}}));
  EXPECT_TRUE(office[3].lost.empty()) << "the dead hear nothing";
  EXPECT_EQ(office[4].lost, (std::vector<Rank>{Rank{3}, Rank{1}}));
}

TEST(EndpointLoss, ADeathIsNoticedAfterHalfToAllOfTheDetectionTime) {
  Office office(NetworkOptions{.ports = {.workers = 50}, .detection = 0.2});
  std::vector<Slip*> slips;
  for (std::uint32_t r = 1; r < 50; ++r) {
    slips.push_back(&office[r].receive(Rank{0}, 1, weightless(1)));
  }
  office.network.die(Rank{0});
  office.run();
  double earliest = 1;
  double latest = 0;
  for (const Slip* slip : slips) {
    ASSERT_TRUE(slip->ended(Finish::Lost));
    earliest = std::min(earliest, slip->seconds());
    latest = std::max(latest, slip->seconds());
  }
  EXPECT_GE(earliest, 0.1);
  EXPECT_LE(latest, 0.2);
  EXPECT_GT(latest - earliest, 0.05) << "not all at once";
}

TEST(EndpointLoss, WhatIsStartedAfterTheLossEndsAsLost) {
  Office office(2);
  office.network.die(Rank{1});
  const Slip& before = office[0].send(Rank{1}, 1, weightless(8));  // dead, but not yet noticed
  office.run();
  EXPECT_TRUE(before.ended(Finish::Lost));
  const Slip& send = office[0].send(Rank{1}, 2, weightless(8));
  const Slip& receive = office[0].receive(Rank{1}, 3, weightless(8));
  EXPECT_TRUE(send.pending() && receive.pending());
  office.run();
  EXPECT_TRUE(send.ended(Finish::Lost));
  EXPECT_TRUE(receive.ended(Finish::Lost));
}

TEST(EndpointLoss, ControlToTheLostIsDropped) {
  Office office(2);
  office.network.die(Rank{1});
  office.run();
  const std::uint64_t messages = office.network.messages();
  office[0].control(Rank{1}, "anybody there?");
  office.run();
  EXPECT_EQ(office.network.messages(), messages);
  EXPECT_TRUE(office[1].letters.empty());
}

TEST(EndpointLoss, NothingIsHeardFromTheDead) {
  // The message is under way for far longer than it takes to notice the death.
  Office office(NetworkOptions{.ports = {.workers = 2, .latency = 1}, .detection = 1e-3});
  std::string into(4, '?');
  const Slip& receive = office[0].receive(Rank{1}, 1, into);
  office[1].control(Rank{0}, "last words");
  office[1].send(Rank{0}, 1, "data");
  office.network.die(Rank{1});
  office.run();
  EXPECT_EQ(office[0].lost.size(), 1u);
  EXPECT_TRUE(office[0].letters.empty());
  EXPECT_TRUE(receive.ended(Finish::Lost));
  EXPECT_EQ(into, "????");
}

TEST(EndpointLoss, CancellingWhatIsBeingLostIsStillOneEnd) {
  Office office(2);
  std::vector<Slip*> slips;
  for (comm::Tag tag = 0; tag < 10; ++tag) {
    slips.push_back(&office[0].receive(Rank{1}, tag, weightless(8)));
  }
  office.network.die(Rank{1});
  // Until the loss is known but none of the ends has been told.
  while (office[0].lost.empty()) {
    ASSERT_TRUE(office.network.step());
  }
  for (Slip* slip : slips) {
    ASSERT_TRUE(slip->pending());
    office[0].cancel(*slip);
  }
  office.run();
  for (const Slip* slip : slips) {
    EXPECT_EQ(slip->told, 1);
    EXPECT_NE(slip->how, Finish::Done);
  }
}

// --- Closing ---------------------------------------------------------------------------------

TEST(EndpointClose, TellsEverythingCancelledAndIsSilentAfterwards) {
  Office office(3);
  std::vector<Slip*> pending = {
      &office[0].receive(Rank{1}, 1, weightless(8)), &office[0].send(Rank{1}, 2, weightless(8)),
      &office[0].timer(time_of(1)), &office[0].receive(Rank{2}, 1, weightless(8))};
  office[0].cancel(*pending[3]);
  office[1].control(Rank{0}, "too late");
  office[0].endpoint().close();  // may speak
  for (const Slip* slip : pending) {
    EXPECT_TRUE(slip->ended(Finish::Cancelled));
  }
  const Slip& theirs = office[1].send(Rank{0}, 1, weightless(8));
  office.network.die(Rank{2});
  office[0].control(Rank{1}, "from the grave");
  office.run();
  EXPECT_TRUE(office[0].letters.empty());
  EXPECT_TRUE(office[0].lost.empty());
  EXPECT_EQ(office[0].told(), 4u);
  EXPECT_TRUE(theirs.pending());
  EXPECT_TRUE(office[1].letters.empty());
}

TEST(EndpointClose, WhatIsStartedAfterwardsEndsAsCancelled) {
  Office office(2);
  office[0].endpoint().close();
  const Slip& send = office[0].send(Rank{1}, 1, weightless(8));
  const Slip& receive = office[0].receive(Rank{1}, 1, weightless(8));
  const Slip& timer = office[0].timer(time_of(1));
  EXPECT_TRUE(send.pending() && receive.pending() && timer.pending());
  office.run();
  EXPECT_TRUE(send.ended(Finish::Cancelled));
  EXPECT_TRUE(receive.ended(Finish::Cancelled));
  EXPECT_TRUE(timer.ended(Finish::Cancelled));
}

TEST(EndpointClose, TwiceIsOnce) {
  Office office(2);
  const Slip& timer = office[0].timer(time_of(1));
  office[0].endpoint().close();
  office[0].endpoint().close();
  EXPECT_TRUE(timer.ended(Finish::Cancelled));
}

// --- (6) Shared memory -----------------------------------------------------------------------

TEST(EndpointMemory, ALeaseSeesTheOwnersBytesBothWays) {
  Office office(NetworkOptions{.ports = {.workers = 2, .per_node = 2}});
  const comm::Blob memory = office[0].endpoint().share(16);
  ASSERT_EQ(memory.size, 16u);
  std::memcpy(memory.data, "from the owner!", 16);
  const std::uint64_t name = office[0].endpoint().publish(memory).value();
  const auto view = office[1].endpoint().lease(Rank{0}, name);
  if (!view) {
    FAIL() << "refused on the same node";
  }
  ASSERT_EQ(view->size, 16u);
  EXPECT_EQ(std::memcmp(view->data, "from the owner!", 16), 0);
  std::memcpy(view->data, "from its reader", 16);
  EXPECT_EQ(std::memcmp(memory.data, "from its reader", 16), 0);
}

TEST(EndpointMemory, APartCanBeNamed) {
  Office office(NetworkOptions{.ports = {.workers = 2, .per_node = 2}});
  const comm::Blob memory = office[0].endpoint().share(16);
  const std::uint64_t name = office[0].endpoint().publish(memory.slice(4, 12)).value();
  const auto view = office[1].endpoint().lease(Rank{0}, name);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->data, memory.data + 4);
  EXPECT_EQ(view->size, 8u);
}

TEST(EndpointMemory, OnlyPoolMemoryCanBeNamed) {
  Office office(NetworkOptions{.ports = {.workers = 2, .per_node = 2}});
  std::vector<std::byte> own(16);
  EXPECT_FALSE(office[0].endpoint().publish({own.data(), own.size()}));
}

TEST(EndpointMemory, LeasesAreCountedUntilTheyAreReleased) {
  Office office(NetworkOptions{.ports = {.workers = 4, .per_node = 4}});
  comm::Endpoint& owner = office[0].endpoint();
  const comm::Blob memory = owner.share(8);
  const std::uint64_t name = owner.publish(memory).value();
  EXPECT_EQ(owner.leases(name), 0u);
  ASSERT_TRUE(office[1].endpoint().lease(Rank{0}, name));
  ASSERT_TRUE(office[2].endpoint().lease(Rank{0}, name));
  EXPECT_EQ(owner.leases(name), 2u);
  EXPECT_THROW(office[3].endpoint().release(Rank{0}, name), Error) << "it holds none";
  owner.withdraw(name);
  EXPECT_FALSE(office[3].endpoint().lease(Rank{0}, name)) << "it is gone";
  EXPECT_EQ(owner.leases(name), 2u) << "who held it still does";
  EXPECT_THROW(owner.unshare(memory), Error) << "a lease is out";
  office[1].endpoint().release(Rank{0}, name);
  office[2].endpoint().release(Rank{0}, name);
  EXPECT_EQ(owner.leases(name), 0u);
  owner.unshare(memory);
  EXPECT_THROW(owner.unshare(memory), Error) << "twice";
}

TEST(EndpointMemory, NoLeaseAcrossNodes) {
  Office office(NetworkOptions{.ports = {.workers = 4, .per_node = 2}});
  const std::uint64_t name = office[0].endpoint().publish(office[0].endpoint().share(8)).value();
  EXPECT_EQ(office[0].endpoint().node_of(Rank{1}), office[0].endpoint().node_of(Rank{0}));
  EXPECT_TRUE(office[0].endpoint().shares_with(Rank{1}));
  EXPECT_FALSE(office[0].endpoint().shares_with(Rank{2}));
  EXPECT_FALSE(office[2].endpoint().lease(Rank{0}, name));
  EXPECT_FALSE(office[1].endpoint().lease(Rank{0}, name + 1)) << "never named";
  EXPECT_EQ(office[0].endpoint().leases(name), 0u);
}

TEST(EndpointMemory, ANameIsNeverUsedTwice) {
  Office office(NetworkOptions{.ports = {.workers = 2, .per_node = 2}});
  comm::Endpoint& owner = office[0].endpoint();
  const comm::Blob memory = owner.share(8);
  const std::uint64_t first = owner.publish(memory).value();
  owner.withdraw(first);
  const std::uint64_t second = owner.publish(memory).value();
  EXPECT_NE(first, second);
  EXPECT_FALSE(office[1].endpoint().lease(Rank{0}, first));
  EXPECT_TRUE(office[1].endpoint().lease(Rank{0}, second));
}

TEST(EndpointMemory, TheDeathOfItsHolderEndsALease) {
  Office office(NetworkOptions{.ports = {.workers = 2, .per_node = 2}});
  comm::Endpoint& owner = office[0].endpoint();
  const comm::Blob memory = owner.share(8);
  const std::uint64_t name = owner.publish(memory).value();
  ASSERT_TRUE(office[1].endpoint().lease(Rank{0}, name));
  office.network.die(Rank{1});
  EXPECT_EQ(owner.leases(name), 1u) << "until the loss is known";
  office.run();
  EXPECT_EQ(owner.leases(name), 0u);
  owner.withdraw(name);
  owner.unshare(memory);
}

TEST(EndpointMemory, NothingIsLeasedFromTheLost) {
  Office office(NetworkOptions{.ports = {.workers = 2, .per_node = 2}});
  const std::uint64_t name = office[0].endpoint().publish(office[0].endpoint().share(8)).value();
  office.network.die(Rank{0});
  office.run();
  EXPECT_FALSE(office[1].endpoint().lease(Rank{0}, name));
}

}  // namespace
}  // namespace starling::sim
