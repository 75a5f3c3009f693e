#include "starling/sim/ports.h"

#include <gtest/gtest.h>

#include "starling/base/error.h"
#include "tests/sim/desk.h"

namespace starling::sim {
namespace {

constexpr double kLatency = 5e-6;
constexpr double kBandwidth = 10e9;
constexpr double kLocalLatency = 1e-6;
constexpr double kLocalBandwidth = 40e9;
constexpr double kPicosecond = 1e-12;
constexpr std::size_t kMega = 1'000'000;

double at(SimTime t) { return seconds(t.time_since_epoch()); }

// Both ends of one message; the receive's slip, which tells when it was all there.
Slip& pass(Office& office, std::uint32_t from, std::uint32_t to, std::size_t bytes,
           comm::Tag tag = 1) {
  Slip& slip = office[to].receive(Rank{from}, tag, weightless(bytes));
  office[from].send(Rank{to}, tag, weightless(bytes));
  return slip;
}

TEST(Ports, AMessageAloneTakesLatencyAndItsBytesAtFullBandwidth) {
  for (std::size_t bytes : {std::size_t{1}, std::size_t{4096}, kMega, 1000 * kMega}) {
    Office office(2);
    const Slip& slip = pass(office, 0, 1, bytes);
    office.run();
    EXPECT_TRUE(slip.done());
    EXPECT_NEAR(slip.seconds(), kLatency + static_cast<double>(bytes) / kBandwidth, kPicosecond);
  }
}

TEST(Ports, TwoSendersShareTheReceivingCard) {
  Office office(3);
  const Slip& first = pass(office, 1, 0, kMega);
  const Slip& second = pass(office, 2, 0, kMega);
  office.run();
  EXPECT_NEAR(first.seconds(), kLatency + 1e-4, kPicosecond);
  EXPECT_NEAR(second.seconds(), kLatency + 2e-4, kPicosecond);
}

TEST(Ports, TwoReceiversShareTheSendingCard) {
  Office office(3);
  const Slip& first = pass(office, 0, 1, kMega);
  const Slip& second = pass(office, 0, 2, kMega);
  office.run();
  EXPECT_NEAR(first.seconds(), kLatency + 1e-4, kPicosecond);
  EXPECT_NEAR(second.seconds(), kLatency + 2e-4, kPicosecond);
}

TEST(Ports, ManyMessagesOfOnePairArriveAtFullRateInTheirOrder) {
  Office office(2);
  std::vector<Slip*> slips;
  for (comm::Tag tag = 0; tag < 50; ++tag) {
    slips.push_back(&pass(office, 0, 1, kMega, tag));
  }
  office.run();
  for (std::size_t i = 0; i < slips.size(); ++i) {
    EXPECT_NEAR(slips[i]->seconds(), kLatency + 1e-4 * static_cast<double>(i + 1),
                kPicosecond * 50);
  }
}

TEST(Ports, TheTwoDirectionsOfACardDoNotShare) {
  Office office(2);
  const Slip& there = pass(office, 0, 1, kMega);
  const Slip& back = pass(office, 1, 0, kMega);
  office.run();
  EXPECT_NEAR(there.seconds(), kLatency + 1e-4, kPicosecond);
  EXPECT_NEAR(back.seconds(), kLatency + 1e-4, kPicosecond);
}

TEST(Ports, StrangersDoNotShareAnything) {
  Office office(4);
  const Slip& one = pass(office, 0, 1, kMega);
  const Slip& other = pass(office, 2, 3, kMega);
  office.run();
  EXPECT_NEAR(one.seconds(), kLatency + 1e-4, kPicosecond);
  EXPECT_NEAR(other.seconds(), kLatency + 1e-4, kPicosecond);
}

TEST(Ports, InsideANodeMessagesTakeTheFasterLink) {
  Office office(NetworkOptions{.ports = {.workers = 4, .per_node = 2}});
  const Slip& local = pass(office, 0, 1, kMega);
  const Slip& remote = pass(office, 2, 1, kMega);
  office.run();
  EXPECT_NEAR(local.seconds(), kLocalLatency + kMega / kLocalBandwidth, kPicosecond);
  EXPECT_NEAR(remote.seconds(), kLatency + 1e-4, kPicosecond) << "local traffic is not in its way";
}

TEST(Ports, WorkersOfOneNodeShareItsCard) {
  Office office(NetworkOptions{.ports = {.workers = 6, .per_node = 2}});
  const Slip& first = pass(office, 0, 2, kMega);
  const Slip& second = pass(office, 1, 4, kMega);  // another receiver, the same sending card
  office.run();
  EXPECT_NEAR(first.seconds(), kLatency + 1e-4, kPicosecond);
  EXPECT_NEAR(second.seconds(), kLatency + 2e-4, kPicosecond);

  Office receivers(NetworkOptions{.ports = {.workers = 6, .per_node = 2}});
  const Slip& left = pass(receivers, 2, 0, kMega);
  const Slip& right = pass(receivers, 4, 1, kMega);  // another sender, the same receiving card
  receivers.run();
  EXPECT_NEAR(left.seconds(), kLatency + 1e-4, kPicosecond);
  EXPECT_NEAR(right.seconds(), kLatency + 2e-4, kPicosecond);
}

TEST(Ports, NodesAreFilledInRankOrder) {
  const Ports ports({.workers = 7, .per_node = 3});
  for (std::uint32_t r = 0; r < 7; ++r) {
    EXPECT_EQ(ports.node_of(Rank{r}), Node{r / 3});
  }
}

TEST(Ports, ControlOvertakesBulk) {
  Office office(2);
  const Slip& bulk = pass(office, 0, 1, 100 * kMega);
  office[0].control(Rank{1}, std::string(1000, 'x'));
  office.run();
  ASSERT_EQ(office[1].letters.size(), 1u);
  EXPECT_NEAR(at(office[1].letters[0].at), kLatency + 1e-7, kPicosecond);
  EXPECT_NEAR(bulk.seconds(), kLatency + 1e-2, kPicosecond);
}

TEST(Ports, ControlWaitsForControlAtBothCards) {
  Ports ports({.workers = 3});
  constexpr double kTime = 4096 / kBandwidth;
  const SimTime now{};
  EXPECT_NEAR(at(ports.control(now, Rank{0}, Rank{1}, 4096, {})), kLatency + kTime, kPicosecond);
  EXPECT_NEAR(at(ports.control(now, Rank{0}, Rank{2}, 4096, {})), kLatency + 2 * kTime,
              kPicosecond);
  EXPECT_NEAR(at(ports.control(now, Rank{2}, Rank{1}, 4096, {})), kLatency + 2 * kTime,
              kPicosecond);
  EXPECT_NEAR(at(ports.control(now, Rank{1}, Rank{0}, 4096, {})), kLatency + kTime, kPicosecond)
      << "the other direction";
}

TEST(Ports, ControlTakesItsTimeFromTheBulkDataItOvertakes) {
  constexpr double kTime = 4000 / kBandwidth;
  const auto bulk_after = [](bool queued_before, int letters) {
    Office office(2);
    pass(office, 0, 1, kMega, 1);
    Slip* second = queued_before ? &pass(office, 0, 1, kMega, 2) : nullptr;
    for (int i = 0; i < letters; ++i) {
      office[0].control(Rank{1}, std::string(4000, 'x'));
    }
    second = queued_before ? second : &pass(office, 0, 1, kMega, 2);
    office.run();
    return second->seconds();
  };
  EXPECT_NEAR(bulk_after(false, 0), kLatency + 2e-4, kPicosecond);
  EXPECT_NEAR(bulk_after(false, 100), kLatency + 2e-4 + 100 * kTime, 200 * kPicosecond);
  EXPECT_NEAR(bulk_after(true, 100), kLatency + 2e-4 + 100 * kTime, 200 * kPicosecond)
      << "also when it stood in the queue already";
}

// A card takes messages in the order in which they come to it, not in which they were sent: one
// that is long under way must not keep out those that are there before it.
TEST(Ports, AMessageOnItsWayDoesNotReserveTheReceivingCard) {
  Ports ports({.workers = 6});
  const SimTime now{};
  const SimDuration late = sim_duration(1e-3);
  EXPECT_NEAR(at(ports.control(now, Rank{0}, Rank{2}, 1000, late)), kLatency + 1e-3 + 1e-7,
              kPicosecond);
  EXPECT_NEAR(at(ports.control(now, Rank{1}, Rank{2}, 1000, {})), kLatency + 1e-7, kPicosecond);
  const Ports::Offer slow = ports.offer(now, Rank{3}, Rank{5}, 1000, late, 1);
  ASSERT_TRUE(slow.there);
  const Ports::Offer fast = ports.offer(now, Rank{4}, Rank{5}, 1000, {}, 2);
  ASSERT_TRUE(fast.there);
  EXPECT_NEAR(at(slow.there.value_or(now)), kLatency + 1e-3 + 1e-7, kPicosecond);
  EXPECT_NEAR(at(fast.there.value_or(now)), kLatency + 1e-7, kPicosecond);
}

// Everybody sends to everybody, each beginning with the next worker: no card is ever asked for two
// messages at once, so nobody waits.
TEST(Ports, ARotationOfControlMessagesFillsEveryCardEvenly) {
  constexpr std::uint32_t kWorkers = 16;
  constexpr double kTime = 1000 / kBandwidth;
  Ports ports({.workers = kWorkers});
  SimTime last{};
  for (std::uint32_t from = 0; from < kWorkers; ++from) {
    for (std::uint32_t d = 1; d < kWorkers; ++d) {
      last = std::max(last, ports.control({}, Rank{from}, Rank{(from + d) % kWorkers}, 1000, {}));
    }
  }
  EXPECT_NEAR(at(last), kLatency + (kWorkers - 1) * kTime, kWorkers * kPicosecond);
}

TEST(Ports, AskingForAMessageThatIsNotThereIsABug) {
  Ports ports({.workers = 2});
  EXPECT_THROW(ports.next({}, 0), Error);
}

TEST(Ports, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_THROW(Ports({.workers = 0}), Error);
  EXPECT_THROW(Ports({.workers = 1, .per_node = 0}), Error);
  EXPECT_THROW(Ports({.workers = 1, .latency = -1}), Error);
  EXPECT_THROW(Ports({.workers = 1, .bandwidth = 0}), Error);
  EXPECT_THROW(Ports({.workers = 1, .local_latency = -1}), Error);
  EXPECT_THROW(Ports({.workers = 1, .local_bandwidth = -1}), Error);
  EXPECT_THROW(Network(NetworkOptions{.ports = {}, .jitter = -1}), Error);
  EXPECT_THROW(Network(NetworkOptions{.ports = {}, .detection = -1}), Error);
}

}  // namespace
}  // namespace starling::sim
