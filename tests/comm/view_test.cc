// The agreement on who is alive, one race after the other: messages travel when the test says so.
#include "starling/comm/view.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/comm/view_bus.h"

namespace starling::comm {
namespace {

TEST(View, ALossIsAgreed) {
  Bus bus(3);
  bus[0].next = 5;
  bus[1].next = 7;
  bus.kill(2);
  bus.lose(0, 2);
  EXPECT_TRUE(bus[0].membership.frozen());
  EXPECT_TRUE(bus[0].membership.ignores({2}));
  EXPECT_FALSE(bus[1].membership.frozen());
  bus.settle();
  bus.expect({0, 1}, 1, {0, 1}, 7);
  bus.lose(1, 2);  // known already
  EXPECT_FALSE(bus[1].membership.frozen());
  EXPECT_EQ(bus[0].freezes, 1);
  EXPECT_EQ(bus[1].freezes, 1);
}

TEST(View, OneOfTwoGoesOnAlone) {
  Bus bus(2);
  bus[0].next = 3;
  bus.lose(0, 1);
  bus.expect({0}, 1, {0}, 3);
}

TEST(View, TwoLossesAtOnceAreOneChange) {
  Bus bus(5);
  bus.kill(3);
  bus.kill(4);
  bus.lose(1, 3);
  bus.lose(2, 4);
  bus.settle();
  bus.expect({0, 1, 2}, 1, {0, 1, 2}, 0);
}

TEST(View, ALossLearntAfterTheStateWasSentIsSentAgain) {
  Bus bus(5);
  bus.kill(3);
  bus.kill(4);
  for (const std::uint32_t r : {0u, 1u, 2u}) {
    bus.lose(r, 4);
    bus[r].next = 10 + r;  // changes nothing: it was said already
  }
  bus.lose(2, 3);
  bus.settle();
  bus.expect({0, 1, 2}, 1, {0, 1, 2}, 0);
  EXPECT_EQ(bus[2].freezes, 1);
}

// Worker 0 has installed when worker 1 learns of one more loss: it comes along, then all go on.
TEST(View, OneWhoHasInstalledBringsTheOthersAlong) {
  Bus bus(5);
  bus.kill(4);
  for (const std::uint32_t r : {0u, 1u, 2u, 3u}) {
    bus.lose(r, 4);
  }
  bus[0].next = 4;  // too late for this change, in time for the next
  for (const std::uint32_t r : {1u, 2u, 3u}) {
    bus.deliver(r, 0);
  }
  bus.expect({0}, 1, {0, 1, 2, 3}, 0);
  bus.kill(3);
  bus.lose(1, 3);
  bus.lose(2, 3);
  bus.settle();
  bus.expect({0, 1, 2}, 2, {0, 1, 2}, 4);
}

// Worker 0 installs and dies. The others have not, and agree on something else; what worker 0 said
// of its view comes too late.
TEST(View, OneWhoInstallsAndDiesLeavesTheOthersInAgreement) {
  Bus bus(7);
  bus.kill(6);
  for (const std::uint32_t r : {0u, 1u, 2u, 3u, 4u, 5u}) {
    bus.lose(r, 6);
  }
  for (const std::uint32_t r : {1u, 2u, 3u, 4u, 5u}) {
    bus.deliver(r, 0);
  }
  bus.expect({0}, 1, {0, 1, 2, 3, 4, 5}, 0);
  bus[0].next = 9;
  bus.lose(0, 5);  // says so in its epoch 1
  bus.kill(0);
  bus.kill(5);
  bus.lose(2, 0);
  bus.deliver(2, 1);
  EXPECT_TRUE(bus[1].membership.ignores({0}));
  bus.deliver(0, 1);  // not heard
  EXPECT_EQ(bus[1].membership.epoch(), 0);
  for (const std::uint32_t r : {2u, 3u, 4u}) {
    bus.drop(0, r);
  }
  bus.lose(3, 5);
  bus.settle();
  bus.expect({1, 2, 3, 4}, 1, {1, 2, 3, 4}, 0);
}

// The same, but worker 3 hears it before it hears of its death: then everyone goes that way.
TEST(View, OneWhoHeardTheDeadBringsTheOthersAlong) {
  Bus bus(6);
  bus.kill(5);
  for (const std::uint32_t r : {0u, 1u, 2u, 3u, 4u}) {
    bus.lose(r, 5);
  }
  for (const std::uint32_t r : {1u, 2u, 3u, 4u}) {
    bus.deliver(r, 0);
  }
  bus[0].next = 9;
  bus.lose(0, 4);
  bus.kill(0);
  bus.kill(4);
  bus.deliver(0, 3);
  EXPECT_EQ(bus[3].membership.epoch(), 1);
  EXPECT_TRUE(bus[3].membership.frozen());
  for (const std::uint32_t r : {1u, 2u, 3u}) {
    bus.lose(r, 0);
    bus.drop(0, r);
  }
  bus.settle();
  bus.expect({1, 2, 3}, 2, {1, 2, 3}, 0);  // worker 0 was at 9, but is no survivor
}

TEST(View, AStateOfANewerEpochBringsItsView) {
  Bus bus(5);
  bus.kill(4);
  bus[3].next = 7;
  for (const std::uint32_t r : {0u, 1u, 2u, 3u}) {
    bus.lose(r, 4);
  }
  for (const std::uint32_t r : {1u, 2u, 3u}) {
    bus.deliver(r, 0);
  }
  bus.kill(3);
  bus.lose(0, 3);
  bus.deliver(0, 1);
  EXPECT_EQ(bus[1].membership.epoch(), 1);
  EXPECT_EQ(bus[1].first, 7);
  EXPECT_EQ(bus[1].freezes, 2);
  bus.settle();
  bus.expect({0, 1, 2}, 2, {0, 1, 2}, 7);
}

// Worker 1 alone knows that worker 3 is lost when it is told of a view that has worker 3 in it.
TEST(View, WhatIsKnownBeyondANewViewIsKept) {
  Bus bus(6);
  bus.kill(5);
  for (const std::uint32_t r : {0u, 1u, 2u, 3u, 4u}) {
    bus.lose(r, 5);
  }
  for (const std::uint32_t r : {1u, 2u, 3u, 4u}) {
    bus.deliver(r, 0);
  }
  bus.kill(3);
  bus.kill(4);
  bus.lose(1, 3);
  bus.lose(0, 4);
  bus.deliver(0, 1);
  EXPECT_EQ(bus[1].membership.epoch(), 1);
  EXPECT_EQ(bus[1].live, (Live{0, 1, 2, 3, 4}));
  EXPECT_TRUE(bus[1].membership.ignores({3}));
  EXPECT_TRUE(bus[1].membership.ignores({4}));
  bus.settle();
  bus.expect({0, 1, 2}, 2, {0, 1, 2}, 0);
}

TEST(View, AWorkerTakenForLostIsToldAndHeardNoMore) {
  Bus bus(4);
  bus.lose(1, 3);
  bus.deliver(1, 3);
  EXPECT_EQ(bus[3].failure, "worker 3 was excluded: worker 1 took it for lost");
  bus.settle();
  bus.expect({0, 1, 2}, 1, {0, 1, 2}, 0);
}

// Worker 3 was stopped, and wakes up when the others have long gone on.
TEST(View, AWorkerThatComesBackIsToldThatItIsExcluded) {
  Bus bus(4);
  bus.lose(1, 3);
  for (const std::uint32_t r : {0u, 1u, 2u}) {
    bus.drop(r, 3);
  }
  for (int i = 0; i < 4; ++i) {
    for (const std::uint32_t from : {0u, 1u, 2u}) {
      for (const std::uint32_t to : {0u, 1u, 2u}) {
        bus.deliver(from, to);
      }
      bus.drop(from, 3);
    }
  }
  bus.expect({0, 1, 2}, 1, {0, 1, 2}, 0);
  bus.lose(3, 0);
  bus.settle();
  EXPECT_EQ(bus[3].failure, "worker 3 was excluded: worker 1 took it for lost");
  bus.expect({0, 1, 2}, 1, {0, 1, 2}, 0);
}

TEST(View, OfTwoThatTakeEachOtherForLostOneGoesOnIfItIsHeardFirst) {
  Bus bus(4);
  bus.lose(1, 2);
  bus.lose(2, 1);
  bus.deliver(1, 0);
  bus.deliver(1, 3);
  bus.settle();
  EXPECT_NE(bus[2].failure, "");
  bus.expect({0, 1, 3}, 1, {0, 1, 3}, 0);
}

TEST(View, OfTwoThatTakeEachOtherForLostNobodyIsLeftIfBothAreHeard) {
  Bus bus(5);
  bus.lose(1, 2);
  bus.lose(2, 1);
  bus.deliver(1, 0);
  bus.deliver(2, 3);
  bus.settle();
  EXPECT_NE(bus[1].failure, "");
  EXPECT_NE(bus[2].failure, "");
  bus.expect({0, 3, 4}, 1, {0, 3, 4}, 0);
}

// Everyone on one side is lost to everyone on the other, in the order of ranks.
void cut(Bus& bus, const Live& here, const Live& there) {
  for (const std::uint32_t a : here) {
    for (const std::uint32_t b : there) {
      bus.lose(a, b);
      bus.lose(b, a);
    }
  }
  for (const std::uint32_t a : here) {
    for (const std::uint32_t b : there) {
      bus.drop(a, b);
      bus.drop(b, a);
    }
  }
  bus.settle();
}

TEST(View, OfFiveCutInThreeAndTwoTheThreeGoOn) {
  Bus bus(5);
  cut(bus, {0, 1}, {2, 3, 4});
  bus.expect({2, 3, 4}, 1, {2, 3, 4}, 0);
  for (const std::uint32_t r : {0u, 1u}) {
    EXPECT_EQ(bus[r].installs, 0);
    EXPECT_EQ(bus[r].failure, "worker " + std::to_string(r) +
                                  " stops: only 2 of 5 workers can be reached, itself included, "
                                  "and the others may go on without them");
  }
}

TEST(View, OfFourCutInHalvesTheSideOfTheLowestGoesOn) {
  Bus bus(4);
  cut(bus, {0, 3}, {1, 2});
  bus.expect({0, 3}, 1, {0, 3}, 0);
  EXPECT_NE(bus[1].failure, "");
  EXPECT_NE(bus[2].failure, "");
}

TEST(View, WhoHasLeftCountsOnNeitherSide) {
  Bus bus(5);
  bus[0].membership.leave();
  bus.settle();
  bus.expect({1, 2, 3, 4}, 1, {1, 2, 3, 4}, 0);
  cut(bus, {1, 4}, {2, 3});
  bus.expect({1, 4}, 2, {1, 4}, 0);
  EXPECT_NE(bus[2].failure, "");
  EXPECT_NE(bus[3].failure, "");
}

// All at about the same time: everyone hears the others' farewell, and nobody fails.
TEST(View, EverybodyLeaves) {
  Bus bus(4);
  bus[3].next = 8;
  bus[3].membership.leave();
  bus.deliver(3, 0);
  for (const std::uint32_t r : {2u, 1u}) {
    bus[r].membership.leave();
  }
  bus.settle();
  bus.expect({0}, 1, {0}, 8);
  bus[0].membership.leave();
  for (const std::uint32_t r : {0u, 1u, 2u, 3u}) {
    EXPECT_EQ(bus[r].failure, "");
  }
}

// It has ended version 11 with the others: they must not do it again without it.
TEST(View, WhatALeaverHasEndedIsNotDoneAgain) {
  Bus bus(3);
  bus[0].next = 11;
  bus[1].next = 11;
  bus[2].next = 12;
  bus[2].membership.leave();
  EXPECT_TRUE(bus[2].membership.frozen());
  bus.deliver(2, 1);
  bus.drop(2, 0);  // hears of it by worker 1
  bus.settle();
  bus.expect({0, 1}, 1, {0, 1}, 12);
  EXPECT_EQ(bus[2].installs, 0);
}

TEST(View, ALeaverThatDiesHalfwayHasLeft) {
  Bus bus(4);
  bus[0].next = 12;
  bus[0].membership.leave();
  bus.kill(0);
  bus.drop(0, 2);
  bus.drop(0, 3);
  bus.lose(2, 0);
  bus.lose(3, 0);
  bus.deliver(2, 3);
  bus.deliver(3, 2);
  bus.deliver(0, 1);
  bus.settle();
  bus.expect({1, 2, 3}, 1, {1, 2, 3}, 12);
}

TEST(View, ALeaverWhoseFarewellNobodyHeardIsLost) {
  Bus bus(3);
  bus[2].next = 12;
  bus[2].membership.leave();
  bus.kill(2);
  bus.drop(2, 0);
  bus.drop(2, 1);
  bus.lose(0, 2);
  bus.settle();
  bus.expect({0, 1}, 1, {0, 1}, 0);
}

// Worker 2 has not installed yet when it leaves; the others have.
TEST(View, AFarewellOfTheLastEpochCounts) {
  Bus bus(4);
  bus.kill(3);
  for (const std::uint32_t r : {0u, 1u, 2u}) {
    bus.lose(r, 3);
  }
  for (const std::uint32_t from : {0u, 1u, 2u}) {
    bus.deliver(from, 0);
    bus.deliver(from, 1);
  }
  bus.expect({0, 1}, 1, {0, 1, 2}, 0);
  bus[2].membership.leave();
  EXPECT_EQ(bus[2].freezes, 1);
  bus.settle();
  bus.expect({0, 1}, 2, {0, 1}, 0);
}

// Worker 0 alone has heard all of epoch 0, among it that worker 4 was at 7. It leaves; worker 4
// dies. The others learn of the installed view from the farewell.
TEST(View, OneWhoInstallsAndLeavesBringsTheOthersAlong) {
  Bus bus(6);
  bus.kill(5);
  bus[4].next = 7;
  for (const std::uint32_t r : {0u, 1u, 2u, 3u, 4u}) {
    bus.lose(r, 5);
  }
  for (const std::uint32_t r : {1u, 2u, 3u, 4u}) {
    bus.deliver(r, 0);
  }
  bus.expect({0}, 1, {0, 1, 2, 3, 4}, 7);
  bus[0].membership.leave();
  bus.kill(4);
  for (const std::uint32_t r : {1u, 2u, 3u}) {
    bus.drop(4, r);
    bus.lose(r, 4);
  }
  bus.drop(0, 1);
  bus.drop(0, 3);
  bus.settle();
  bus.expect({1, 2, 3}, 2, {1, 2, 3}, 7);
}

TEST(View, NothingHappensAfterTheEnd) {
  Bus bus(3);
  bus[2].membership.leave();
  bus.lose(2, 0);
  bus[2].membership.leave();
  EXPECT_EQ(bus.under_way(2, 0), 1);
  bus.settle();
  bus.expect({0, 1}, 1, {0, 1}, 0);
  EXPECT_EQ(bus[2].failure, "");
}

TEST(View, MessagesAreReadAsTheyWereWritten) {
  const ViewMessage sent{.kind = ViewKind::State,
                         .epoch = 3,
                         .first = 1ull << 40,
                         .next = 5,
                         .passed = 6,
                         .standings = {Standing::Left, Standing::Alive, Standing::Lost,
                                       Standing::Outside, Standing::Alive}};
  const ViewMessage read = unpack_view(pack(sent), 5);
  EXPECT_EQ(read.kind, sent.kind);
  EXPECT_EQ(read.epoch, sent.epoch);
  EXPECT_EQ(read.first, sent.first);
  EXPECT_EQ(read.next, sent.next);
  EXPECT_EQ(read.passed, sent.passed);
  EXPECT_EQ(read.standings, sent.standings);
  EXPECT_LE(pack({.standings = Standings(kMostInView)}).size(), kMaxControl);
}

TEST(View, TooManyWorkersAreRefused) {
  Bus bus(1);
  EXPECT_THROW(Member(bus, Rank{0}, kMostInView + 1), Error);
}

}  // namespace
}  // namespace starling::comm
