#include "starling/sim/network.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "starling/base/error.h"
#include "tests/sim/desk.h"

namespace starling::sim {
namespace {

using comm::Finish;

// Everybody sends control messages and bulk data to everybody.
void chat(Office& office) {
  const auto n = static_cast<std::uint32_t>(office.network.size());
  for (std::uint32_t a = 0; a < n; ++a) {
    for (std::uint32_t b = 0; b < n; ++b) {
      if (a == b) {
        continue;
      }
      office[a].control(Rank{b}, "hello");
      office[a].send(Rank{b}, 1, weightless(10'000));
      office[b].receive(Rank{a}, 1, weightless(10'000));
    }
  }
}

struct Played {
  std::vector<std::string> lines;
  std::uint64_t trace = 0;
  std::uint64_t events = 0;
  std::size_t told = 0;
};

Played play(const NetworkOptions& options, const std::vector<Fault>& faults = {}) {
  Office office(options);
  Played played;
  office.network.record(played.lines);
  for (const Fault& fault : faults) {
    office.network.plan(fault);
  }
  chat(office);
  office.run();
  for (std::size_t r = 0; r < office.network.size(); ++r) {
    played.told += office[r].told();
  }
  played.trace = office.network.trace_hash();
  played.events = office.network.events();
  return played;
}

NetworkOptions options_of(std::uint64_t seed, double jitter = 1e-5) {
  return {.ports = {.workers = 5}, .jitter = jitter, .seed = seed};
}

TEST(Network, TheSameSeedGivesTheSameTrace) {
  const Played a = play(options_of(3));
  const Played b = play(options_of(3));
  EXPECT_EQ(a.lines, b.lines);
  EXPECT_EQ(a.trace, b.trace);
  EXPECT_EQ(a.lines.size(), a.events);
  EXPECT_GE(a.events, 40u);
  EXPECT_EQ(a.told, 40u) << "20 sends and 20 receives";
}

TEST(Network, AnotherSeedGivesAnotherTraceIfThereIsJitter) {
  EXPECT_NE(play(options_of(3)).trace, play(options_of(4)).trace);
  EXPECT_NE(play(options_of(3)).lines, play(options_of(4)).lines);
  EXPECT_EQ(play(options_of(3, 0)).trace, play(options_of(4, 0)).trace);
}

TEST(Network, ADeathAtAnEventIsDeterministic) {
  const std::uint64_t events = play(options_of(1)).events;
  std::size_t fewer = 0;
  for (std::uint64_t at = 0; at <= events; at += 7) {
    const std::vector<Fault> faults = {{.at_event = at, .worker = Rank{2}}};
    const Played a = play(options_of(1), faults);
    const Played b = play(options_of(1), faults);
    ASSERT_EQ(a.lines, b.lines) << "at event " << at;
    ASSERT_EQ(a.trace, b.trace);
    fewer += a.told < 40 ? 1 : 0;
  }
  EXPECT_GT(fewer, 0u) << "the dead one is not told of its ends";
}

TEST(Network, AFaultHappensJustBeforeItsEvent) {
  Office office(2);
  office.network.plan({.at_event = 3, .worker = Rank{1}, .kind = FaultKind::Die});
  for (int i = 1; i <= 5; ++i) {
    office[0].timer(time_of(i));
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(office.network.step());
    EXPECT_FALSE(office.network.dead(Rank{1}));
  }
  ASSERT_TRUE(office.network.step());
  EXPECT_TRUE(office.network.dead(Rank{1}));
}

TEST(Network, StoppingDelaysAndLosesNothing) {
  Office office(3);
  std::string into(4, '?');
  office.network.stop(Rank{1});
  const Slip& receive = office[1].receive(Rank{0}, 1, into);
  const Slip& send = office[0].send(Rank{1}, 1, "data");
  const Slip& late = office[0].send(Rank{1}, 2, "late");
  const Slip& timer = office[1].timer(time_of(0.5));
  for (int i = 0; i < 10; ++i) {
    office[0].control(Rank{1}, fmt::format("{}", i));
  }
  office[0].endpoint().wait(time_of(1));
  EXPECT_TRUE(office[1].letters.empty());
  EXPECT_EQ(office[1].told(), 0u);
  EXPECT_TRUE(send.pending());
  office.network.resume(Rank{1});
  office.run();
  EXPECT_TRUE(send.done() && receive.done() && timer.done());
  EXPECT_EQ(into, "data");
  EXPECT_TRUE(late.pending());
  ASSERT_EQ(office[1].letters.size(), 10u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(office[1].letters[static_cast<std::size_t>(i)].text, fmt::format("{}", i));
  }
  EXPECT_EQ(receive.seconds(), 1);
}

TEST(Network, WhatTheStoppedOneSentIsAcknowledgedWhenItGoesOn) {
  Office office(2);
  const Slip& send = office[0].send(Rank{1}, 1, "data");
  office.network.stop(Rank{0});
  const Slip& receive = office[1].receive(Rank{0}, 1, weightless(4));
  office.run();
  EXPECT_TRUE(receive.done()) << "the wire does not stop";
  EXPECT_TRUE(send.pending());
  office.network.resume(Rank{0});
  office.run();
  EXPECT_TRUE(send.done());
}

TEST(Network, AStoppedWorkerResumesByItself) {
  Office office(2);
  office.network.plan({.at_event = 0, .worker = Rank{1}, .kind = FaultKind::Stop, .seconds = 0.25});
  office[0].control(Rank{1}, "hello");
  office.run();
  ASSERT_EQ(office[1].letters.size(), 1u);
  EXPECT_EQ(seconds(office[1].letters[0].at.time_since_epoch()), 0.25);
}

TEST(Network, StoppedWorkersHearInOrderWhatComesAtTheMomentOfTheirResuming) {
  Office office(2);
  office[0].control(Rank{1}, "");  // empty ones take no time: both are there at the same moment
  office[0].control(Rank{1}, "");
  office[0].control(Rank{1}, "x");
  office.network.stop(Rank{1});
  ASSERT_TRUE(office.network.step());
  office.network.resume(Rank{1});
  const SimTime first = office.network.now();
  office.run();
  ASSERT_EQ(office[1].letters.size(), 3u);
  EXPECT_EQ(office[1].letters[1].at, first);

  // The same with texts, by jitter: the second waits for the first and comes with it.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Office jittery(NetworkOptions{.ports = {.workers = 2}, .jitter = 1e-3, .seed = seed});
    jittery[0].control(Rank{1}, "1");
    jittery[0].control(Rank{1}, "2");
    jittery[0].control(Rank{1}, "3");
    jittery.network.stop(Rank{1});
    ASSERT_TRUE(jittery.network.step());
    jittery.network.resume(Rank{1});
    jittery.run();
    ASSERT_EQ(jittery[1].letters.size(), 3u);
    EXPECT_EQ(jittery[1].letters[0].text, "1") << "seed " << seed;
    EXPECT_EQ(jittery[1].letters[1].text, "2") << "seed " << seed;
    EXPECT_EQ(jittery[1].letters[2].text, "3") << "seed " << seed;
  }
}

TEST(Network, AStoppedWorkerThatDiesIsNoticed) {
  Office office(2);
  const Slip& send = office[0].send(Rank{1}, 1, "data");
  office.network.stop(Rank{1});
  office[0].endpoint().wait(time_of(1));
  office.network.die(Rank{1});
  office.run();
  EXPECT_TRUE(send.ended(Finish::Lost));
  EXPECT_EQ(office[0].lost, (std::vector<Rank>{Rank{1}}));
}

TEST(Network, CountsWhatEachWorkerSends) {
  Office office(2);
  office[0].control(Rank{1}, "12345");
  office[0].send(Rank{1}, 1, weightless(1000));
  office[0].send(Rank{1}, 2, weightless(500));
  EXPECT_EQ(office.network.sent_by(Rank{0}).control_bytes, 5u);
  EXPECT_EQ(office.network.sent_by(Rank{0}).bulk_bytes, 1500u);
  EXPECT_EQ(office.network.sent_by(Rank{0}).messages, 3u);
  EXPECT_EQ(office.network.sent_by(Rank{1}).messages, 0u);
  EXPECT_EQ(office.network.messages(), 3u);
}

TEST(Network, SeveralInOneProcessDoNotKnowOfEachOther) {
  const Played alone = play(options_of(5));
  Office first(options_of(5));
  Office second(options_of(6));
  std::vector<std::string> lines;
  first.network.record(lines);
  chat(first);
  chat(second);
  second.network.die(Rank{0});
  bool more = true;
  while (more) {
    const bool a = first.network.step();
    const bool b = second.network.step();
    more = a || b;
  }
  EXPECT_EQ(lines, alone.lines);
  EXPECT_EQ(first.network.trace_hash(), alone.trace);
  EXPECT_FALSE(first.network.dead(Rank{0}));
  EXPECT_TRUE(first[1].lost.empty());
  EXPECT_EQ(second[1].lost.size(), 1u);
}

}  // namespace
}  // namespace starling::sim
