#include "starling/comm/engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/running.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/sim/network.h"

namespace starling::comm {
namespace {

constexpr auto kSecond = std::chrono::seconds(1);

// Some engines on a network of their own, driven by hand.
class Rig {
 public:
  explicit Rig(std::size_t workers, const EngineOptions& options = {})
      : network({.ports = {.workers = workers}}) {
    for (std::uint32_t r = 0; r < workers; ++r) {
      engines.push_back(std::make_unique<Engine>(network.endpoint(Rank{r}), arithmetic, options));
      network.attach(*engines.back());
    }
  }
  Engine& operator[](std::size_t r) { return *engines.at(r); }
  void run() {
    while (network.step()) {
    }
  }

  KernelArithmetic arithmetic;
  sim::Network network;
  std::vector<std::unique_ptr<Engine>> engines;
};

std::string error_text(const Running<void>& running) {
  try {
    if (running.error()) {
      std::rethrow_exception(running.error());
    }
  } catch (const Error& e) {
    return fmt::format("{}: {}", name_of(e.code()), e.what());
  }
  return "";
}

Task<void> sleep(Engine& engine, Duration time) { co_await engine.sleep_for(time); }

Task<void> reduce(Engine& engine, std::uint64_t id, std::size_t elements, AllReduce algorithm) {
  const std::vector<float> in(elements, 1);
  std::vector<float> out(elements);
  std::vector<Rank> members;
  for (std::uint32_t r = 0; r < engine.size(); ++r) {
    members.push_back(Rank{r});
  }
  const ConstBuffer input = comm::input(std::span(in));
  const Buffer output = comm::output(std::span(out));
  co_await all_reduce(engine, {.id = id, .members = members}, input, output, algorithm);
  check(out[0] == static_cast<float>(engine.size()), "the sum is {}", out[0]);
}

// --- Sleeping ----------------------------------------------------------------------------------

TEST(EngineSleep, LastsAsLongAsAsked) {
  Rig rig(1);
  Running<void> running(sleep(rig[0], 3 * kSecond));
  EXPECT_FALSE(running.done());
  rig.run();
  ASSERT_TRUE(running.done());
  EXPECT_NO_THROW(running.take());
  EXPECT_EQ(rig[0].now(), Time(3 * kSecond));
}

TEST(EngineSleep, UntilThePastDoesNotWait) {
  Rig rig(1);
  Running<void> running(sleep(rig[0], Duration(0)));
  EXPECT_TRUE(running.done());
}

TEST(EngineSleep, SleepersWakeInTheOrderOfTheirTimes) {
  Rig rig(1);
  std::vector<int> order;
  const auto wake = [](Engine& engine, int seconds, std::vector<int>& woke) -> Task<void> {
    co_await engine.sleep_for(seconds * kSecond);
    woke.push_back(seconds);
  };
  std::vector<Running<void>> all;
  for (int seconds : {3, 1, 5, 2, 4}) {
    all.emplace_back(wake(rig[0], seconds, order));
  }
  rig.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 5}));
}

TEST(EngineSleep, EndsEarlyOnlyByCancellation) {
  Rig rig(1);
  Running<void> running(sleep(rig[0], 3600 * kSecond));
  running.cancel(std::make_exception_ptr(Error(ErrorCode::Cancelled, "enough")));
  EXPECT_FALSE(running.done()) << "the timer has to come back first";
  ASSERT_TRUE(rig.network.step());
  ASSERT_TRUE(running.done());
  EXPECT_EQ(error_text(running), "cancelled: enough");
  EXPECT_EQ(rig[0].now(), Time());
}

TEST(EngineSleep, CancelledBeforeItBeginsThrowsToo) {
  Rig rig(1);
  const auto twice = [](Engine& engine) -> Task<void> {
    try {
      co_await engine.sleep_for(kSecond);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::Cancelled);
    }
    co_await engine.sleep_for(kSecond);
  };
  Running<void> running(twice(rig[0]));
  running.cancel(std::make_exception_ptr(Error(ErrorCode::Cancelled, "enough")));
  rig.run();
  ASSERT_TRUE(running.done());
  EXPECT_EQ(error_text(running), "cancelled: enough");
}

// --- Taking turns ------------------------------------------------------------------------------

TEST(EngineRun, ThoseWhoYieldTakeTurns) {
  Rig rig(1);
  std::string order;
  const auto turns = [](Engine& engine, char name, std::string& text) -> Task<void> {
    for (int i = 0; i < 3; ++i) {
      text.push_back(name);
      co_await engine.yield();
    }
  };
  Running<void> a(turns(rig[0], 'a', order));
  Running<void> b(turns(rig[0], 'b', order));
  Running<void> c(turns(rig[0], 'c', order));
  while (rig[0].run()) {
  }
  EXPECT_EQ(order, "abcabcabc");
  EXPECT_TRUE(a.done() && b.done() && c.done());
}

TEST(EngineRun, ResumesOneGenerationAndSaysWhetherThereIsMore) {
  Rig rig(1);
  int turns = 0;
  const auto count = [](Engine& engine, int& n) -> Task<void> {
    for (int i = 0; i < 3; ++i) {
      co_await engine.yield();
      ++n;
    }
  };
  EXPECT_FALSE(rig[0].run()) << "nothing is ready";
  Running<void> running(count(rig[0], turns));
  EXPECT_EQ(turns, 0);
  EXPECT_TRUE(rig[0].run());
  EXPECT_EQ(turns, 1);
  EXPECT_TRUE(rig[0].run());
  EXPECT_EQ(turns, 2);
  EXPECT_FALSE(rig[0].run());
  EXPECT_EQ(turns, 3);
  EXPECT_TRUE(running.done());
}

// --- Closing -----------------------------------------------------------------------------------

TEST(EngineClose, EndsEverySleepAndOperation) {
  for (AllReduce algorithm :
       {AllReduce::Doubling, AllReduce::Direct, AllReduce::Halving, AllReduce::Ring}) {
    for (std::size_t elements : {10u, 100'000u}) {
      Rig rig(3);
      Running<void> sleeping(sleep(rig[0], 3600 * kSecond));
      Running<void> first(reduce(rig[0], 1, elements, algorithm));
      Running<void> second(reduce(rig[0], 2, elements, algorithm));
      rig.network.endpoint(Rank{1}).wait(Time(kSecond));
      rig[0].close();
      for (const Running<void>* running : {&sleeping, &first, &second}) {
        ASSERT_TRUE(running->done());
        EXPECT_EQ(error_text(*running), "cancelled: the engine of worker 0 was closed");
      }
    }
  }
}

TEST(EngineClose, NothingBeginsAfterwards) {
  Rig rig(2);
  rig[0].close();
  rig[0].close();
  Running<void> sleeping(sleep(rig[0], kSecond));
  Running<void> reducing(reduce(rig[0], 1, 10, AllReduce::Auto));
  ASSERT_TRUE(sleeping.done());
  ASSERT_TRUE(reducing.done());
  EXPECT_NE(error_text(sleeping).find("closed"), std::string::npos);
  EXPECT_NE(error_text(reducing).find("closed"), std::string::npos);
}

TEST(EngineClose, AProgramMayCatchAndTryAgainInVain) {
  Rig rig(2);
  int caught = 0;
  const auto stubborn = [](Engine& engine, int& n) -> Task<void> {
    for (std::uint64_t id = 1; id <= 5; ++id) {
      try {
        co_await reduce(engine, id, 10, AllReduce::Auto);
      } catch (const Error& e) {
        n += e.code() == ErrorCode::Cancelled ? 1 : 0;
      }
      co_await engine.yield();
    }
  };
  Running<void> running(stubborn(rig[0], caught));
  rig[0].close();
  EXPECT_TRUE(running.done());
  EXPECT_EQ(caught, 5);
}

TEST(EngineClose, DestroyedInTheMiddleOfOperations) {
  // At every moment of a run of several operations at once; the sanitizers watch.
  for (int steps = 0; steps < 120; ++steps) {
    std::vector<Running<void>> all;
    {
      Rig rig(3, {.chunk = 4096, .window = 4});
      for (std::size_t r = 0; r < 3; ++r) {
        all.emplace_back(reduce(rig[r], 1, 10'000, AllReduce::Direct));
        all.emplace_back(reduce(rig[r], 2, 5000, AllReduce::Halving));
        all.emplace_back(reduce(rig[r], 3, 100, AllReduce::Doubling));
        all.emplace_back(reduce(rig[r], 4, 5000, AllReduce::Ring));
        while (rig[r].run()) {
        }
      }
      for (int i = 0; i < steps; ++i) {
        rig.network.step();
      }
      rig.engines[1].reset();
      ASSERT_TRUE(all[4].done() && all[5].done() && all[6].done() && all[7].done());
    }
    for (const Running<void>& one : all) {
      ASSERT_TRUE(one.done());
      const std::string text = error_text(one);
      EXPECT_TRUE(text.empty() || text.starts_with("cancelled: ")) << text;
    }
  }
}

TEST(EngineClose, OthersNoticeOnlyThatItDoesNotAnswer) {
  Rig rig(3, {.max_stall = kSecond});
  std::vector<Running<void>> all;
  for (std::size_t r = 0; r < 3; ++r) {
    all.emplace_back(reduce(rig[r], 1, 10'000, AllReduce::Direct));
  }
  rig[2].close();
  rig.run();
  for (std::size_t r = 0; r < 2; ++r) {
    ASSERT_TRUE(all[r].done());
    const std::string text = error_text(all[r]);
    EXPECT_TRUE(text.starts_with("stalled: all-reduce 1")) << text;
    EXPECT_NE(text.find("worker 2 did not answer"), std::string::npos) << text;
  }
}

// --- Options and facts -------------------------------------------------------------------------

TEST(EngineOptions, AWindowOfOneIsRefused) {
  sim::Network network({.ports = {.workers = 1}});
  const KernelArithmetic arithmetic;
  for (std::size_t window : {0u, 1u}) {
    try {
      const Engine engine(network.endpoint(Rank{0}), arithmetic, {.window = window});
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::Input);
      EXPECT_NE(std::string(e.what()).find("window"), std::string::npos);
    }
  }
  EXPECT_NO_THROW(Engine(network.endpoint(Rank{0}), arithmetic, {.window = 2}));
}

TEST(EngineFacts, AreThoseOfItsEndpoint) {
  Rig rig(3, {.chunk = 640, .window = 5});
  EXPECT_EQ(rig[2].rank(), Rank{2});
  EXPECT_EQ(rig[2].size(), 3u);
  EXPECT_EQ(rig[2].options().chunk, 640u);
  EXPECT_EQ(rig[2].options().window, 5u);
  EXPECT_EQ(&rig[2].endpoint(), &rig.network.endpoint(Rank{2}));
  EXPECT_EQ(&rig[2].arithmetic(), &rig.arithmetic);
  EXPECT_FALSE(rig[2].lost(Rank{0}));
  rig.network.die(Rank{0});
  rig.run();
  EXPECT_TRUE(rig[2].lost(Rank{0}));
  EXPECT_FALSE(rig[2].lost(Rank{1}));
}

}  // namespace
}  // namespace starling::comm
