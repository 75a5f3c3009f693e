// The contract of comm/endpoint.h, held against the endpoint of real workers, on a wire in memory.
#include "starling/comm/host_endpoint.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>

#include "starling/base/error.h"
#include "tests/comm/host_office.h"

namespace starling::comm {
namespace {

using std::chrono::milliseconds;

std::string_view text_of(ConstBlob blob) {
  return {reinterpret_cast<const char*>(blob.data), blob.size};
}

// The same for workers on hosts of their own and on one host.
class HostEndpoints : public testing::TestWithParam<bool> {
 protected:
  static OfficeOptions office_of(std::size_t workers, std::uint64_t seed = 0) {
    return GetParam() ? together(workers, seed) : apart(workers, seed);
  }
};
INSTANTIATE_TEST_SUITE_P(Hosts, HostEndpoints, testing::Bool(), [](const auto& instance) {
  return std::string(instance.param ? "Together" : "Apart");
});

// --- (1) Control messages --------------------------------------------------------------------

TEST_P(HostEndpoints, ControlArrivesInOrderPerPair) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Office office(office_of(3, seed));
    for (int i = 0; i < 200; ++i) {
      office[0].control(Rank{2}, fmt::format("{}", i));
      office[1].control(Rank{2}, fmt::format("{}", i));
      if (i % 20 == 0) {
        office.net.step(office.draw);
        office[2].look();
      }
    }
    EXPECT_LE(office[2].letters.size(), 400u);
    office.run();
    std::array<int, 2> next = {0, 0};
    for (const Desk::Letter& letter : office[2].letters) {
      ASSERT_EQ(letter.text, fmt::format("{}", next[letter.from.index()]++)) << "seed " << seed;
    }
    EXPECT_EQ(next[0], 200);
    EXPECT_EQ(next[1], 200);
  }
}

TEST_P(HostEndpoints, ControlCarriesUpTo4096BytesAndEmptyOnes) {
  Office office(office_of(2));
  std::string longest(kMaxControl, '\0');
  for (std::size_t i = 0; i < longest.size(); ++i) {
    longest[i] = static_cast<char>(i * 7);
  }
  std::string text = longest;
  office[0].control(Rank{1}, text);
  text.assign(text.size(), '?');  // it was copied
  office[0].control(Rank{1}, "");
  EXPECT_THROW(
      office[0].endpoint().control(Rank{1}, std::vector<std::byte>(kMaxControl + 1, std::byte{})),
      Error);
  EXPECT_THROW(office[0].endpoint().control(Rank{0}, {}), Error) << "to oneself";
  office.run();
  ASSERT_EQ(office[1].letters.size(), 2u);
  EXPECT_EQ(office[1].letters[0].text, longest);
  EXPECT_EQ(office[1].letters[0].from, Rank{0});
  EXPECT_EQ(office[1].letters[1].text, "");
}

// --- (2) Bulk data ---------------------------------------------------------------------------

TEST_P(HostEndpoints, AReceiveTakesTheMessageOfItsPeerAndTag) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Office office(office_of(3, seed));
    struct Message {
      std::uint32_t from;
      Tag tag;
      std::string data;
      std::string into;
      Slip* sent = nullptr;
      Slip* received = nullptr;
    };
    std::vector<Message> messages;
    for (const std::uint32_t from : {0u, 1u}) {
      for (Tag tag = 0; tag < 5; ++tag) {
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
      const std::size_t i = office.draw.below(acts.size());
      const auto [m, sends] = acts[i];
      acts.erase(acts.begin() + static_cast<std::ptrdiff_t>(i));
      if (sends) {
        m->sent = &office[m->from].send(Rank{2}, m->tag, m->data);
      } else {
        m->received = &office[2].receive(Rank{m->from}, m->tag, m->into);
      }
      office.net.step(office.draw);
      office[office.draw.below(3)].look();
    }
    office.run();
    for (const Message& m : messages) {
      ASSERT_EQ(m.into, m.data) << "seed " << seed;
      ASSERT_TRUE(m.sent->done() && m.received->done()) << "seed " << seed;
      ASSERT_EQ(m.received->bytes, m.data.size());
    }
  }
}

TEST_P(HostEndpoints, ASendIsDoneOnlyWhenAReceiveTookIt) {
  Office office(office_of(2));
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

TEST_P(HostEndpoints, TheSizeThatWasSentIsReported) {
  Office office(office_of(2));
  std::string shorter(3, '?');
  std::string longer(8, '?');
  const Slip& cut = office[1].receive(Rank{0}, 1, shorter);
  const Slip& part = office[1].receive(Rank{0}, 2, longer);
  const Slip& one = office[0].send(Rank{1}, 1, "abcde");
  const Slip& two = office[0].send(Rank{1}, 2, "abcde");
  office.run();
  EXPECT_TRUE(one.done() && two.done());
  EXPECT_TRUE(cut.done());
  EXPECT_EQ(cut.bytes, 5u);
  EXPECT_TRUE(part.done());
  EXPECT_EQ(part.bytes, 5u);
  EXPECT_EQ(longer.substr(5), "???") << "never more than was sent";
}

TEST_P(HostEndpoints, TheSameTagServesAgainOnceItIsFree) {
  Office office(office_of(2));
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

TEST_P(HostEndpoints, WrongCallsAreBugsAndLeaveNothingBehind) {
  Office office(office_of(2));
  std::string into(4, '?');
  const Slip& first = office[1].receive(Rank{0}, 1, into);
  {
    Slip refused(office[1]);
    Endpoint& endpoint = office[1].endpoint();
    const Blob blob{reinterpret_cast<std::byte*>(into.data()), into.size()};
    EXPECT_THROW(endpoint.receive(Rank{0}, 1, blob, refused), Error) << "the tag is in use";
    EXPECT_THROW(endpoint.receive(Rank{0}, 2, {}, refused), Error) << "nothing";
    EXPECT_THROW(endpoint.receive(Rank{1}, 2, blob, refused), Error) << "from oneself";
    EXPECT_THROW(endpoint.send(Rank{0}, 2, {}, refused), Error) << "nothing";
    EXPECT_THROW(endpoint.send(Rank{1}, 2, blob, refused), Error) << "to oneself";
    office.net.sever(Rank{0}, Rank{1});
    office.run();
    EXPECT_EQ(refused.told, 0);
  }
  EXPECT_TRUE(first.ended(Finish::Lost));
}

// --- Cancelling ------------------------------------------------------------------------------

TEST_P(HostEndpoints, ACancelledReceiveLeavesItsTagFree) {
  Office office(office_of(2));
  std::string into(4, '?');
  Slip& receive = office[1].receive(Rank{0}, 1, into);
  office[1].cancel(receive);
  office[1].cancel(receive);
  EXPECT_TRUE(receive.pending()) << "told only from wait()";
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

TEST_P(HostEndpoints, AReceiveCancelledBetweenItsMatchAndTheNextWaitTakesNothing) {
  Office office(office_of(2));
  const Slip& sent = office[0].send(Rank{1}, 1, "data");
  office.run();
  std::string into(4, '?');
  Slip& receive = office[1].receive(Rank{0}, 1, into);
  office[1].cancel(receive);
  office.run();
  EXPECT_TRUE(receive.ended(Finish::Cancelled));
  EXPECT_EQ(into, "????");
  EXPECT_TRUE(sent.pending());
  const Slip& again = office[1].receive(Rank{0}, 1, into);
  office.run();
  EXPECT_TRUE(sent.done() && again.done());
  EXPECT_EQ(into, "data");
}

TEST_P(HostEndpoints, ASendCancelledInFlightNeverArrives) {
  Office office(office_of(2));
  std::string into(4, '?');
  const Slip& receive = office[1].receive(Rank{0}, 1, into);
  Slip& send = office[0].send(Rank{1}, 1, "data");
  office[0].cancel(send);
  office.run();
  EXPECT_TRUE(send.ended(Finish::Cancelled));
  EXPECT_TRUE(receive.pending());
  EXPECT_EQ(into, "????");
  const Slip& next = office[0].send(Rank{1}, 1, "next");
  office.run();
  EXPECT_TRUE(next.done() && receive.done());
  EXPECT_EQ(into, "next");
}

TEST_P(HostEndpoints, ACancelledSendThatWaitsAtTheReceiverIsTakenBack) {
  Office office(office_of(2));
  Slip& send = office[0].send(Rank{1}, 1, "data");
  office.run();
  office[0].cancel(send);
  office[0].cancel(send);
  office.run();
  EXPECT_TRUE(send.ended(Finish::Cancelled));
  std::string into(4, '?');
  const Slip& receive = office[1].receive(Rank{0}, 1, into);
  office.run();
  EXPECT_TRUE(receive.pending());
  EXPECT_EQ(into, "????");
}

TEST(HostEndpointCancel, ATakeThatCrossesAWithdrawalWaitsForTheNextOffer) {
  Office office(apart(2));
  std::string into(4, '?');
  const Slip& receive = office[1].receive(Rank{0}, 1, into);
  Slip& send = office[0].send(Rank{1}, 1, "data");
  office.net.deliver_packets();
  office[1].look();  // takes it
  office[0].cancel(send);
  const Slip& next = office[0].send(Rank{1}, 1, "next");
  office.run();
  EXPECT_TRUE(send.ended(Finish::Cancelled));
  EXPECT_TRUE(next.done());
  EXPECT_TRUE(receive.done());
  EXPECT_EQ(into, "next");
}

TEST(HostEndpointCancel, BothSidesOfATakenOfferAtOnce) {
  Office office(apart(2));
  std::string into(4, '?');
  Slip& receive = office[1].receive(Rank{0}, 1, into);
  Slip& send = office[0].send(Rank{1}, 1, "data");
  office.net.deliver_packets();
  office[1].look();
  office[0].cancel(send);
  office[1].cancel(receive);
  office.run();
  EXPECT_TRUE(send.ended(Finish::Cancelled));
  EXPECT_TRUE(receive.ended(Finish::Cancelled));
  const Slip& again = office[1].receive(Rank{0}, 1, into);
  const Slip& next = office[0].send(Rank{1}, 1, "next");
  office.run();
  EXPECT_TRUE(next.done() && again.done());
  EXPECT_EQ(into, "next");
}

TEST(HostEndpointCancel, WhatStillComesForACancelledReceiveRunsIntoTheSand) {
  Office office(apart(2));
  std::string into(4, '?');
  Slip& receive = office[1].receive(Rank{0}, 1, into);
  const Slip& send = office[0].send(Rank{1}, 1, "data");
  office.exchange_packets();  // both wires have it
  office[1].cancel(receive);
  office[1].look();
  EXPECT_TRUE(receive.ended(Finish::Cancelled));
  const Slip& again = office[1].receive(Rank{0}, 1, into);
  office.run();
  EXPECT_TRUE(send.done()) << "it was taken";
  EXPECT_TRUE(again.pending()) << "it waits for another";
  EXPECT_EQ(into, "????");
  const Slip& next = office[0].send(Rank{1}, 1, "next");
  office.run();
  EXPECT_TRUE(next.done() && again.done());
  EXPECT_EQ(into, "next");
}

TEST(HostEndpointCancel, ATransferThatHasBegunGoesOn) {
  Office office(apart(2));
  std::string into(4, '?');
  Slip& receive = office[1].receive(Rank{0}, 1, into);
  Slip& send = office[0].send(Rank{1}, 1, "data");
  office.exchange_packets();
  office.net.begin_transfers();
  EXPECT_EQ(into, "da??");
  office[0].cancel(send);
  office[1].cancel(receive);
  office[1].cancel(receive);
  office.look();
  EXPECT_TRUE(receive.pending() && send.pending());
  office.run();
  EXPECT_TRUE(receive.done() && send.done());
  EXPECT_EQ(into, "data");
}

TEST(HostEndpointCancel, ASendUnderACopyIsCancelledWhenTheCopyHasEnded) {
  Office office(together(2));
  const Blob memory = office[0].endpoint().share(64);
  Slip& send = office[0].send(Rank{1}, 1, memory);
  // The other one is in the middle of copying: the first name of a pool is 1.
  auto copies = PoolView::open(office[0].pool().address(), 1).value();
  ASSERT_TRUE(copies.lease(1));
  office[0].cancel(send);
  office[0].cancel(send);
  office[0].wait(milliseconds(5));
  EXPECT_TRUE(send.pending()) << "its memory is still being read";
  copies.release(1);
  office[0].wait(milliseconds(5));
  EXPECT_TRUE(send.ended(Finish::Cancelled));
}

TEST(HostEndpointCancel, ASendThatWasCopiedWhileItWasRecalledIsDone) {
  Office office(together(2));
  const Blob memory = office[0].endpoint().share(64);
  std::string into(64, '?');
  Slip& send = office[0].send(Rank{1}, 1, memory);
  const Slip& receive = office[1].receive(Rank{0}, 1, into);
  office[1].look();
  ASSERT_TRUE(receive.done());
  auto copies = PoolView::open(office[0].pool().address(), 1).value();
  ASSERT_TRUE(copies.lease(1));
  office[0].cancel(send);
  office[0].look();
  EXPECT_TRUE(send.done());
}

// A peer that holds a transfer up for five seconds after it was cancelled is given up, whichever
// way the bytes go: the buffer has to come back.
TEST(HostEndpointCancel, WhoHoldsUpACancelledTransferIsGivenUp) {
  Office office({.nodes = {0, 0, 1, 2}});
  const Blob memory = office[0].endpoint().share(64);
  std::string into(4, '?');
  Slip& copied = office[0].send(Rank{1}, 1, memory);
  auto copies = PoolView::open(office[0].pool().address(), 1).value();
  ASSERT_TRUE(copies.lease(1));
  Slip& sent = office[0].send(Rank{2}, 1, "data");
  std::string theirs(4, '?');
  office[2].receive(Rank{0}, 1, theirs);
  Slip& received = office[0].receive(Rank{3}, 1, into);
  office[3].send(Rank{0}, 1, "data");
  for (int i = 0; i < 3; ++i) {
    office.net.deliver_packets();
    for (const std::size_t r : {0, 2, 3}) {
      office[r].look();
    }
  }
  office.net.begin_transfers();
  const std::vector<Slip*> all = {&copied, &sent, &received};
  for (Slip* slip : all) {
    office[0].cancel(*slip);
  }
  office[0].wait(std::chrono::seconds(4));
  for (const Slip* slip : all) {
    EXPECT_TRUE(slip->pending()) << "late is not lost";
  }
  EXPECT_TRUE(office[0].lost.empty());
  office[0].wait(milliseconds(1100));
  for (const Slip* slip : all) {
    EXPECT_TRUE(slip->ended(Finish::Lost));
  }
  EXPECT_EQ(office[0].lost.size(), 3u);
}

// --- (3) and (4) Time ------------------------------------------------------------------------

class HostEndpointTime : public testing::TestWithParam<bool> {
 protected:
  HostEndpointTime() : office_({.nodes = {0, 1}, .files = GetParam()}) {}
  Desk& desk() { return office_[0]; }
  Office office_;
};
INSTANTIATE_TEST_SUITE_P(Wires, HostEndpointTime, testing::Bool(), [](const auto& instance) {
  return std::string(instance.param ? "SleptOn" : "Polled");
});

TEST_P(HostEndpointTime, TimersRingInTheOrderOfTheirTimes) {
  std::vector<int> rung;
  const Time start = desk().endpoint().now();
  for (const int t : {3, 1, 2, 0}) {
    desk().timer(start + milliseconds(2 * t)).then = [&rung, t] { rung.push_back(t); };
  }
  desk().timer(start - std::chrono::hours(1)).then = [&rung] { rung.push_back(-1); };
  EXPECT_TRUE(rung.empty()) << "soon, but not at once";
  desk().wait(milliseconds(10));
  EXPECT_EQ(rung, (std::vector<int>{-1, 0, 1, 2, 3}));
}

TEST_P(HostEndpointTime, ACancelledTimerNeverRings) {
  Slip& timer = desk().timer_in(milliseconds(5));
  desk().cancel(timer);
  desk().cancel(timer);
  EXPECT_TRUE(timer.pending());
  desk().look();
  EXPECT_TRUE(timer.ended(Finish::Cancelled)) << "at once";
  desk().wait(milliseconds(10));
  EXPECT_EQ(timer.told, 1);
}

TEST_P(HostEndpointTime, NoTimerRingsEarlyAndWaitEndsWithIt) {
  const Time when = desk().endpoint().now() + milliseconds(5);
  Time rung{};
  desk().timer(when).then = [&] { rung = desk().endpoint().now(); };
  desk().endpoint().wait(Time::max());
  EXPECT_GE(rung, when);
}

TEST_P(HostEndpointTime, WaitReturnsAtUntilWhenNothingHappens) {
  const Time until = desk().endpoint().now() + milliseconds(5);
  desk().endpoint().wait(until);
  EXPECT_GE(desk().endpoint().now(), until);
}

TEST_P(HostEndpointTime, NotifyWakesTheRunningOrTheNextWait) {
  desk().endpoint().notify();
  desk().endpoint().notify();
  desk().endpoint().wait(Time::max());
  for (int i = 0; i < 200; ++i) {
    std::jthread other([&] { desk().endpoint().notify(); });
    desk().endpoint().wait(Time::max());
  }
  const Time until = desk().endpoint().now() + milliseconds(2);
  desk().endpoint().wait(until);
  EXPECT_GE(desk().endpoint().now(), until) << "only once";
}

TEST_P(HostEndpointTime, APacketWakesAWait) {
  office_.net.deliver_packets(/*always=*/true);
  std::jthread other([&] { office_[1].control(Rank{0}, "wake up"); });
  desk().endpoint().wait(Time::max());
  EXPECT_EQ(desk().letters.size(), 1u);
}

// The bell rings whenever there is room in a ring, also when nobody waits for it. It must not keep
// an endpoint from sleeping afterwards.
TEST(HostEndpointSleep, AStrayRingEndsOneSleep) {
  Office office(together(2));
  auto view = PoolView::open(office[0].pool().address(), 1).value();
  view.outbox().ring();
  office[0].wait(milliseconds(20));
  EXPECT_LE(office.net.arms(Rank{0}), 5u) << "it turns in circles";
}

// More packets than a ring holds, to somebody who is asleep and to somebody who is busy.
TEST(HostEndpointSleep, AFullRingIsEmptiedAndFilledAgain) {
  Office office(together(2));
  constexpr int kPackets = 3000;
  std::jthread other([&] {
    while (office[1].letters.size() < kPackets) {
      office[1].endpoint().wait(office[1].endpoint().now() + std::chrono::seconds(5));
    }
  });
  for (int i = 0; i < kPackets; ++i) {
    office[0].control(Rank{1}, fmt::format("{}", i));
  }
  std::atomic<bool> over{false};
  std::jthread driver([&] {
    while (!over) {
      office[0].endpoint().wait(Time::max());
    }
  });
  other.join();
  over = true;
  office[0].endpoint().notify();
  driver.join();
  for (std::size_t i = 0; i < kPackets; ++i) {
    ASSERT_EQ(office[1].letters[i].text, fmt::format("{}", i));
  }
}

// --- (5) Loss --------------------------------------------------------------------------------

TEST_P(HostEndpoints, WhatIsPendingWithTheLostEndsAsLost) {
  Office office(office_of(3));
  std::string into(8, '?');
  std::string other(8, '?');
  const std::string data(8, 'd');
  const Slip& receive = office[0].receive(Rank{2}, 1, into);
  const Slip& send = office[0].send(Rank{2}, 2, data);
  const Slip& stays = office[0].receive(Rank{1}, 1, other);
  const Slip& timer = office[0].timer_in(milliseconds(1));
  office[2].send(Rank{0}, 9, data);
  office.run();
  office.net.sever(Rank{0}, Rank{2});
  EXPECT_TRUE(receive.pending());
  office.run();
  office[0].wait(milliseconds(2));
  EXPECT_TRUE(receive.ended(Finish::Lost));
  EXPECT_TRUE(send.ended(Finish::Lost));
  EXPECT_TRUE(stays.pending()) << "worker 1 lives";
  EXPECT_TRUE(timer.done());
  EXPECT_EQ(office[0].lost, std::vector<Rank>{Rank{2}});
  EXPECT_EQ(office[2].lost, std::vector<Rank>{Rank{0}});
  EXPECT_TRUE(office[1].lost.empty());
  office.net.sever(Rank{0}, Rank{2});
  office.run();
  EXPECT_EQ(office[0].lost.size(), 1u) << "once";

  // Also what is started now, and what it had offered.
  const Slip& late_send = office[0].send(Rank{2}, 3, data);
  const Slip& late_receive = office[0].receive(Rank{2}, 9, into);
  EXPECT_TRUE(late_send.pending() && late_receive.pending());
  const std::uint64_t packets = office.net.packets();
  office[0].control(Rank{2}, "anybody there?");
  office.run();
  EXPECT_TRUE(late_send.ended(Finish::Lost));
  EXPECT_TRUE(late_receive.ended(Finish::Lost));
  EXPECT_EQ(office.net.packets(), packets);
  EXPECT_TRUE(office[2].letters.empty());
}

TEST(HostEndpointLoss, TransfersUnderWayEndAsLost) {
  for (const bool begun : {false, true}) {
    for (const bool cancelled : {false, true}) {
      Office office(apart(2));
      std::string into(4, '?');
      Slip& receive = office[1].receive(Rank{0}, 1, into);
      Slip& send = office[0].send(Rank{1}, 1, "data");
      office.exchange_packets();
      if (begun) {
        office.net.begin_transfers();
      }
      if (cancelled) {
        office[0].cancel(send);
        office[1].cancel(receive);
      }
      office.net.sever_everything();
      office.look();
      office.look();
      EXPECT_TRUE(send.ended(Finish::Lost));
      EXPECT_EQ(receive.told, 1);
      EXPECT_EQ(receive.how, cancelled && !begun ? Finish::Cancelled : Finish::Lost);
    }
  }
}

TEST(HostEndpointLoss, NothingIsHeardFromTheLost) {
  Office office(apart(2));
  office[1].control(Rank{0}, "last words");
  office.net.sever_everything();
  office.look();
  office.run();
  EXPECT_EQ(office[0].lost.size(), 1u);
  EXPECT_TRUE(office[0].letters.empty());
}

TEST_P(HostEndpoints, CancellingAndStartingWhileBeingToldOfALoss) {
  Office office(office_of(2));
  std::vector<Slip*> slips;
  std::string into(80, '?');
  for (Tag tag = 0; tag < 10; ++tag) {
    const Blob part{reinterpret_cast<std::byte*>(into.data()) + 8 * tag, 8};
    slips.push_back(&office[0].receive(Rank{1}, tag, part));
    slips.push_back(&office[0].send(Rank{1}, tag, part));
  }
  std::vector<Slip*> more;
  office[0].when_lost = [&](Rank peer) {
    for (Slip* slip : slips) {
      EXPECT_TRUE(slip->pending());
      office[0].cancel(*slip);
    }
    more.push_back(&office[0].send(peer, 99, "anybody there?"));
    more.push_back(&office[0].receive(peer, 98, into));
    office[0].control(peer, "anybody there?");
  };
  office.net.sever(Rank{0}, Rank{1});
  office.run();
  for (const Slip* slip : slips) {
    EXPECT_EQ(slip->told, 1);
    EXPECT_NE(slip->how, Finish::Done);
  }
  ASSERT_EQ(more.size(), 2u);
  EXPECT_TRUE(more[0]->ended(Finish::Lost) && more[1]->ended(Finish::Lost));
}

// --- (6) Shared memory -----------------------------------------------------------------------

TEST(HostEndpointMemory, ALeaseSeesTheOwnersBytesBothWays) {
  Office office({.nodes = {0, 0, 1}});
  Endpoint& owner = office[0].endpoint();
  const Blob memory = owner.share(16);
  std::memcpy(memory.data, "from the owner!!", 16);
  const std::uint64_t name = owner.publish(memory).value();
  const auto view = office[1].endpoint().lease(Rank{0}, name);
  ASSERT_TRUE(view);
  EXPECT_EQ(text_of(*view), "from the owner!!");
  std::memcpy(view->data, "from its reader!", 16);
  EXPECT_EQ(text_of(memory), "from its reader!");
  EXPECT_EQ(owner.leases(name), 1u);
  EXPECT_FALSE(office[2].endpoint().lease(Rank{0}, name)) << "another host";
  EXPECT_TRUE(owner.shares_with(Rank{1}));
  EXPECT_FALSE(owner.shares_with(Rank{2}));
  owner.withdraw(name);
  office[1].endpoint().release(Rank{0}, name);
  EXPECT_EQ(owner.leases(name), 0u);
  owner.unshare(memory);
}

TEST(HostEndpointMemory, TheLossOfItsHolderEndsALease) {
  Office office(together(2));
  Endpoint& owner = office[0].endpoint();
  const std::uint64_t name = owner.publish(owner.share(8)).value();
  const std::uint64_t theirs = office[1].endpoint().publish(office[1].endpoint().share(8)).value();
  ASSERT_TRUE(office[1].endpoint().lease(Rank{0}, name));
  office.net.sever(Rank{0}, Rank{1});
  EXPECT_EQ(owner.leases(name), 1u) << "until the loss is known";
  office.run();
  EXPECT_EQ(owner.leases(name), 0u);
  EXPECT_FALSE(owner.lease(Rank{1}, theirs)) << "nothing is leased from the lost";
}

// Seats are counted on every host; those of another host's workers mean nothing in this pool.
TEST(HostEndpointMemory, TheLossOfAWorkerElsewhereEndsNoLease) {
  Office office({.nodes = {0, 0, 1, 1}});
  Endpoint& owner = office[0].endpoint();
  const std::uint64_t name = owner.publish(owner.share(8)).value();
  ASSERT_TRUE(office[1].endpoint().lease(Rank{0}, name));
  office.net.sever(Rank{0}, Rank{3});
  office.net.sever(Rank{0}, Rank{2});
  office.run();
  ASSERT_EQ(office[0].lost.size(), 2u);
  EXPECT_EQ(owner.leases(name), 1u);
}

// What a send copies into the pool is given back, however the send ends.
TEST(HostEndpointMemory, CopiesForSendsAreGivenBack) {
  constexpr std::size_t kRoom = 1 << 18;
  const std::string data(5000, 'd');
  enum class End : std::uint8_t { Done, Cancelled, Lost, Closed };
  for (const End end : {End::Done, End::Cancelled, End::Lost, End::Closed}) {
    Office office({.nodes = {0, 0}, .pool_bytes = kRoom});
    Slip& send = office[0].send(Rank{1}, 1, data);
    EXPECT_THROW(office[0].endpoint().share(kRoom), Error) << "the copy is there";
    std::string into(5000, '?');
    switch (end) {
      case End::Done:
        office[1].receive(Rank{0}, 1, into);
        break;
      case End::Cancelled:
        office[0].cancel(send);
        break;
      case End::Lost:
        office.net.sever(Rank{0}, Rank{1});
        break;
      case End::Closed:
        office.close(0);
        break;
    }
    office.run();
    EXPECT_EQ(send.told, 1);
    EXPECT_NO_THROW(office[0].endpoint().share(kRoom));
  }
}

// A pool that is full, or has no name left, is no error: the wire carries the bytes.
TEST(HostEndpointMemory, WhatDoesNotFitInThePoolGoesOverTheWire) {
  Office office({.nodes = {0, 0}, .pool_bytes = 4096});
  const std::string data(10'000, 'd');
  std::string into(data.size(), '?');
  const Slip& send = office[0].send(Rank{1}, 1, data);
  const Slip& receive = office[1].receive(Rank{0}, 1, into);
  office.run();
  EXPECT_TRUE(send.done() && receive.done());
  EXPECT_EQ(into, data);
}

TEST(HostEndpointMemory, WhatFindsNoNameGoesOverTheWire) {
  constexpr std::size_t kRoom = 1 << 18;
  Office office({.nodes = {0, 0}, .pool_bytes = kRoom});
  Endpoint& owner = office[0].endpoint();
  const Blob memory = owner.share(100);
  std::memset(memory.data, 'p', memory.size);
  while (owner.publish(memory)) {
  }
  const std::string data(5000, 'd');
  for (const bool cancels : {false, true}) {
    std::string into(data.size(), '?');
    std::string other(memory.size, '?');
    Slip& copied = office[0].send(Rank{1}, 1, data);
    Slip& shared = office[0].send(Rank{1}, 2, memory);
    if (cancels) {
      office[0].cancel(copied);
      office[0].cancel(shared);
      office.run();
      EXPECT_TRUE(copied.ended(Finish::Cancelled) && shared.ended(Finish::Cancelled));
    } else {
      office[1].receive(Rank{0}, 1, into);
      office[1].receive(Rank{0}, 2, other);
      office.run();
      EXPECT_TRUE(copied.done() && shared.done());
      EXPECT_EQ(into, data);
      EXPECT_EQ(other, std::string(memory.size, 'p'));
    }
  }
  owner.unshare(memory);
  EXPECT_NO_THROW(owner.share(kRoom)) << "no copy is left";
}

// --- Closing and leaving ---------------------------------------------------------------------

TEST_P(HostEndpoints, CloseTellsEverythingCancelledAndIsSilentAfterwards) {
  Office office(office_of(3));
  std::string into(8, '?');
  std::string other(8, '?');
  const std::string data(8, 'd');
  std::vector<Slip*> pending = {
      &office[0].receive(Rank{1}, 1, into), &office[0].send(Rank{1}, 2, data),
      &office[0].timer_in(std::chrono::hours(1)), &office[0].receive(Rank{2}, 1, other)};
  office[0].cancel(*pending[3]);
  office[1].control(Rank{0}, "too late");
  office.close(0);
  for (const Slip* slip : pending) {
    EXPECT_TRUE(slip->ended(Finish::Cancelled));
  }
  const std::uint64_t told = office[0].told;
  office[0].endpoint().close();
  office[1].control(Rank{0}, "much too late");
  office[0].control(Rank{1}, "from the grave");
  office.run();
  EXPECT_TRUE(office[0].letters.empty());
  EXPECT_TRUE(office[0].lost.empty());
  EXPECT_EQ(office[0].told, told);
  EXPECT_TRUE(office[1].letters.empty());

  const Slip& send = office[0].send(Rank{1}, 1, data);
  const Slip& receive = office[0].receive(Rank{1}, 1, into);
  const Slip& timer = office[0].timer_in(milliseconds(0));
  EXPECT_TRUE(send.pending() && receive.pending() && timer.pending());
  office[0].look();
  EXPECT_TRUE(send.ended(Finish::Cancelled));
  EXPECT_TRUE(receive.ended(Finish::Cancelled));
  EXPECT_TRUE(timer.ended(Finish::Cancelled));
}

TEST(HostEndpointClose, TransfersUnderWayEndAsCancelled) {
  for (const bool begun : {false, true}) {
    Office office(apart(2));
    std::string into(4, '?');
    std::string theirs(4, '?');
    const Slip& receive = office[0].receive(Rank{1}, 1, into);
    const Slip& send = office[0].send(Rank{1}, 2, "data");
    office[1].send(Rank{0}, 1, "data");
    const Slip& taken = office[1].receive(Rank{0}, 2, theirs);
    office.exchange_packets();
    if (begun) {
      office.net.begin_transfers();
    }
    office.close(0);
    EXPECT_TRUE(receive.ended(Finish::Cancelled));
    EXPECT_TRUE(send.ended(Finish::Cancelled));
    into = "mine";
    office.run();
    EXPECT_EQ(into, "mine") << "written after its end";
    EXPECT_TRUE(taken.ended(Finish::Lost)) << "the other side finds it gone";
  }
}

TEST_P(HostEndpoints, WhoLeavesWaitsUntilNobodyNeedsIt) {
  Office office(office_of(3));
  const Time until = office[1].endpoint().now() + milliseconds(50);
  std::atomic<bool> needed{true};
  office[1].needed = [&](Rank peer) {
    EXPECT_EQ(peer, Rank{0});
    needed = office[1].endpoint().now() < until;
    return needed.load();
  };
  office.close(0);
  EXPECT_FALSE(needed.load());
  EXPECT_GE(office[1].endpoint().now(), until);
}

TEST_P(HostEndpoints, AllMayLeaveAtOnce) {
  Office office(office_of(3));
  for (std::size_t r = 0; r < 3; ++r) {
    office[r].needed = [](Rank) { return true; };
  }
  office.net.deliver_packets(/*always=*/true);
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < 3; ++r) {
    threads.emplace_back([&office, r] { office[r].endpoint().close(); });
  }
}

TEST_P(HostEndpoints, WhatWasSaidBeforeLeavingIsHeard) {
  Office office(office_of(2));
  for (int i = 0; i < 100; ++i) {
    office[0].control(Rank{1}, fmt::format("{}", i));
  }
  office.close(0);
  office[1].look();
  EXPECT_EQ(office[1].letters.size(), 100u);
}

// --- Greeting --------------------------------------------------------------------------------

TEST_P(HostEndpoints, GreetingEverybodyNamesWhoIsMissing) {
  Office office(office_of(3));
  office.net.deliver_packets(/*always=*/true);
  {
    std::jthread other([&] { office[1].endpoint().greet_all(std::chrono::seconds(5)); });
    std::jthread third([&] { office[2].endpoint().greet_all(std::chrono::seconds(5)); });
    EXPECT_NO_THROW(office[0].endpoint().greet_all(std::chrono::seconds(5)));
  }
  Office silent(office_of(3));
  try {
    silent[0].endpoint().greet_all(milliseconds(10));
    ADD_FAILURE() << "nobody was there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Stalled) << error.what();
  }
  silent.net.sever_everything();
  try {
    silent[0].endpoint().greet_all(std::chrono::seconds(5));
    ADD_FAILURE() << "nobody was there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Lost) << error.what();
  }
}

}  // namespace
}  // namespace starling::comm
