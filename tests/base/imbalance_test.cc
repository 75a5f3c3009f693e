#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "starling/base/compute_times.h"
#include "starling/base/delay.h"
#include "starling/base/error.h"

namespace starling {
namespace {

template <typename Code>
std::string refusal(Code code) {
  try {
    code();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

std::set<std::uint32_t> late(const Delay& delay, std::uint32_t workers, std::int64_t step) {
  std::set<std::uint32_t> who;
  for (std::uint32_t r = 0; r < workers; ++r) {
    const Duration time = delay.delay(Rank{r}, Step{step});
    if (time > Duration{0}) {
      EXPECT_EQ(time, milliseconds(50));
      who.insert(r);
    }
  }
  return who;
}

TEST(Delay, ExactlySoManyDistinctWorkersInEveryStep) {
  for (const std::uint32_t workers : {1u, 2u, 3u, 5u, 8u, 16u, 100u}) {
    for (const std::uint32_t count : {0u, 1u, 2u, workers}) {
      if (count <= workers) {
        const Delay delay(fmt::format("{}x0.05", count), workers, 9);
        for (std::int64_t step = 0; step < 200; ++step) {
          ASSERT_EQ(late(delay, workers, step).size(), count) << workers << " workers";
        }
      }
    }
  }
}

TEST(Delay, TheSameDrawOnAllWorkersAnotherForOtherSeedsAndSteps) {
  const Delay here("3x0.05", 16, 9);
  const Delay there("3x0.05", 16, 9);
  const Delay other("3x0.05", 16, 10);
  int same_as_last = 0;
  int same_as_other = 0;
  for (std::int64_t step = 0; step < 300; ++step) {
    EXPECT_EQ(late(here, 16, step), late(there, 16, step));
    same_as_last += late(here, 16, step) == late(here, 16, step + 1) ? 1 : 0;
    same_as_other += late(here, 16, step) == late(other, 16, step) ? 1 : 0;
  }
  EXPECT_LT(same_as_last, 10);
  EXPECT_LT(same_as_other, 10);
}

TEST(Delay, EverybodyIsDrawnAsOften) {
  const Delay delay("2x0.05", 8, 1);
  std::vector<int> count(8);
  for (std::int64_t step = 0; step < 8'000; ++step) {
    for (const std::uint32_t r : late(delay, 8, step)) {
      ++count[r];
    }
  }
  // Binomial: mean 2,000, deviation 39.
  for (const int n : count) {
    EXPECT_NEAR(n, 2'000, 195);
  }
}

TEST(Delay, OneSlowWorkerARampNobody) {
  const Delay one("rank:2:0.1", 4, 0);
  const Delay ramp("ramp:0.001", 4, 0);
  const Delay nobody("", 4, 0);
  for (std::uint32_t r = 0; r < 4; ++r) {
    for (std::int64_t step = 0; step < 3; ++step) {
      EXPECT_EQ(one.delay(Rank{r}, Step{step}), milliseconds(r == 2 ? 100 : 0));
      EXPECT_EQ(ramp.delay(Rank{r}, Step{step}), milliseconds(r));
      EXPECT_EQ(nobody.delay(Rank{r}, Step{step}), milliseconds(0));
    }
  }
}

// Everyone has every place of the ramp in turn; the paper's 50 to 400 ms of 8 workers.
TEST(Delay, ARampThatRotates) {
  const Delay delay("rotating:0.05:0.4", 8, 0);
  for (std::int64_t step = 0; step < 20; ++step) {
    std::set<Duration> times;
    for (std::uint32_t r = 0; r < 8; ++r) {
      times.insert(delay.delay(Rank{r}, Step{step}));
      EXPECT_EQ(delay.delay(Rank{r}, Step{step + 1}), delay.delay(Rank{(r + 1) % 8}, Step{step}));
    }
    EXPECT_EQ(times.size(), 8U);
    EXPECT_EQ(*times.begin(), milliseconds(50));
    EXPECT_EQ(*times.rbegin(), milliseconds(400));
  }
  EXPECT_EQ(Delay("rotating:0.05:0.4", 1, 0).delay(Rank{0}, Step{3}), milliseconds(50));
}

TEST(Delay, TimesOfAPublishedWorkload) {
  const Delay delay("draw:navigation:0.1", 8, 5);
  const ComputeTimes compute("draw:navigation:0.1", 5);
  double sum = 0;
  int long_ones = 0;
  constexpr int kDraws = 40'000;
  for (int i = 0; i < kDraws; ++i) {
    const Rank worker{static_cast<std::uint32_t>(i % 8)};
    const double time = seconds(delay.delay(worker, Step{i / 8}));
    sum += time;
    long_ones += time > 0.2 ? 1 : 0;  // above 4.2 s of 2.1
    const ComputeTime emulated = compute.at(worker, Step{i / 8});
    EXPECT_NEAR(seconds(emulated.backward), 2 * seconds(emulated.forward), 3e-9);
  }
  EXPECT_NEAR(sum / kDraws, 0.1, 0.003);
  EXPECT_NEAR(static_cast<double>(long_ones) / kDraws, 241.0 / 5000, 0.006);
  EXPECT_EQ(delay.delay(Rank{3}, Step{7}),
            Delay("draw:navigation:0.1", 8, 5).delay(Rank{3}, Step{7}));
  EXPECT_NE(delay.delay(Rank{3}, Step{7}),
            Delay("draw:navigation:0.1", 8, 6).delay(Rank{3}, Step{7}));
}

TEST(Delay, Refusals) {
  const auto refused = [](const std::string& text) {
    return refusal([&] { static_cast<void>(Delay(text, 4, 0)); });
  };
  const auto form = [](const std::string& text) {
    return fmt::format(
        "delay '{}': write COUNTxSECONDS, rank:R:SECONDS, ramp:SECONDS, rotating:FROM:TO or "
        "draw:NAME:MEAN, such as 2x0.05",
        text);
  };
  for (const char* text :
       {"2", "x", "2x0.1x3", "rank:1", "ramp:1:2", "slope:0.1", "2x0.1:3", "rotating:0.1"}) {
    const std::string what = refused(text);
    EXPECT_TRUE(what == form(text) || what.starts_with("delay '" + std::string(text) + "': '"))
        << what;
    EXPECT_NE(what, "no error");
  }
  EXPECT_EQ(refused("2"), form("2"));
  EXPECT_NE(refused("draw:navigatoin:1").find("did you mean 'navigation'?"), std::string::npos);
  EXPECT_EQ(refused("draw:cloud:x"),
            "delay 'draw:cloud:x': 'x' is not a time; allowed are 0 to 3600 seconds");
  EXPECT_EQ(refused("5x0.1"), "delay '5x0.1': '5' is not a number of workers; allowed are 0 to 4");
  EXPECT_EQ(refused("-1x0.1"),
            "delay '-1x0.1': '-1' is not a number of workers; allowed are 0 to 4");
  EXPECT_EQ(refused("rank:4:0.1"), "delay 'rank:4:0.1': '4' is not a rank; allowed are 0 to 3");
  for (const std::string word : {"-0.1", "nan", "inf", "1e9", "", "1s"}) {
    EXPECT_EQ(
        refused("2x" + word),
        fmt::format("delay '2x{0}': '{0}' is not a time; allowed are 0 to 3600 seconds", word));
  }
}

TEST(ComputeTimes, Constant) {
  const ComputeTimes compute("0.010:0.020", 3);
  const ComputeTime time = compute.at(Rank{1}, Step{5});
  EXPECT_EQ(time.forward, milliseconds(10));
  EXPECT_EQ(time.backward, milliseconds(20));
}

TEST(ComputeTimes, VariesAsAsked) {
  const ComputeTimes compute("0.010:0.020:0.5", 3);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 40'000;
  for (int i = 0; i < kDraws; ++i) {
    const ComputeTime time = compute.at(Rank{static_cast<std::uint32_t>(i % 8)}, Step{i / 8});
    EXPECT_NEAR(seconds(time.backward), 2 * seconds(time.forward), 3e-9);
    EXPECT_GT(time.forward, nanoseconds(0));
    sum += seconds(time.forward);
    squares += seconds(time.forward) * seconds(time.forward);
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.010, 0.0002);  // 8 deviations of the mean
  EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean) / mean, 0.5, 0.03);
}

TEST(ComputeTimes, TheSameForASeedOthersForOthers) {
  const ComputeTimes a("0.1:0.1:0.3", 3);
  const ComputeTimes b("0.1:0.1:0.3", 3);
  const ComputeTimes c("0.1:0.1:0.3", 4);
  EXPECT_EQ(a.at(Rank{2}, Step{9}).forward, b.at(Rank{2}, Step{9}).forward);
  EXPECT_NE(a.at(Rank{2}, Step{9}).forward, c.at(Rank{2}, Step{9}).forward);
  EXPECT_NE(a.at(Rank{2}, Step{9}).forward, a.at(Rank{2}, Step{10}).forward);
  EXPECT_NE(a.at(Rank{2}, Step{9}).forward, a.at(Rank{3}, Step{9}).forward);
}

TEST(ComputeTimes, Refusals) {
  const auto refused = [](const std::string& text) {
    return refusal([&] { static_cast<void>(ComputeTimes(text, 0)); });
  };
  EXPECT_TRUE(refused("0.1").starts_with("computation '0.1': write FORWARD:BACKWARD"));
  EXPECT_TRUE(refused("").starts_with("computation '': write FORWARD:BACKWARD"));
  EXPECT_TRUE(refused("1:2:0:4").starts_with("computation '1:2:0:4': write FORWARD"));
  EXPECT_EQ(refused("0.1:-1"),
            "computation '0.1:-1': '-1' is not a time; allowed are 0 to 3600 seconds");
  EXPECT_EQ(refused("0.1:0.1:x"),
            "computation '0.1:0.1:x': 'x' is not a coefficient of variation; allowed are "
            "0 to 10");
}

TEST(ComputeTimes, WholeStepsOfADistribution) {
  constexpr int kDraws = 40'000;
  for (const char* text : {"normal:0.3,0.0036", "lognormal:0.3,0.0036"}) {
    const ComputeTimes times(text, 3);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const ComputeTime time = times.at(Rank{static_cast<std::uint32_t>(i % 8)}, Step{i / 8});
      const double whole = seconds(time.forward + time.backward);
      EXPECT_NEAR(seconds(time.forward), whole / 3, 2e-9);
      EXPECT_GT(whole, 0);
      sum += whole;
      squares += whole * whole;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 0.3, 0.0015) << text;  // 5 deviations of the mean
    EXPECT_NEAR(squares / kDraws - mean * mean, 0.0036, 0.00018) << text;
    EXPECT_EQ(times.mean(), 0.3);
  }
  const ComputeTime time = ComputeTimes("constant:0.4", 3, 0.25).at(Rank{1}, Step{5});
  EXPECT_EQ(time.forward, milliseconds(100));
  EXPECT_EQ(time.backward, milliseconds(300));
  // A hundredth of the mean at least, however wide.
  const ComputeTimes wide("normal:1,100", 3);
  for (int i = 0; i < 1'000; ++i) {
    const ComputeTime drawn = wide.at(Rank{0}, Step{i});
    EXPECT_GE(drawn.forward + drawn.backward, milliseconds(10));
  }
}

TEST(ComputeTimes, MeasuredStepsStayWhole) {
  const std::vector<ComputeTime> steps = {{milliseconds(1), milliseconds(10)},
                                          {milliseconds(2), milliseconds(20)},
                                          {milliseconds(3), milliseconds(30)}};
  const ComputeTimes times(steps, 7);
  std::set<Duration> seen;
  for (int i = 0; i < 300; ++i) {
    const ComputeTime time = times.at(Rank{static_cast<std::uint32_t>(i % 3)}, Step{i});
    EXPECT_EQ(time.backward, 10 * time.forward);
    seen.insert(time.forward);
  }
  EXPECT_EQ(seen.size(), 3U);
  EXPECT_DOUBLE_EQ(times.mean(), 0.022);
  const std::vector<double> whole = {0.3};
  EXPECT_EQ(ComputeTimes(whole, 7).at(Rank{0}, Step{0}).forward, milliseconds(100));
  EXPECT_EQ(refusal([] { static_cast<void>(ComputeTimes(std::vector<double>{}, 7)); }),
            "computation: no measured steps");
  EXPECT_EQ(refusal([] { static_cast<void>(ComputeTimes(std::vector<double>{1, -1}, 7)); }),
            "computation: a step of -1 seconds");
}

// Forty steps each: means of equal workers differ by chance, and none of them is slow for that.
TEST(ComputeTimes, WorkersThatDifferByChanceAreAlike) {
  const auto measured = [](double of_the_last) {
    std::vector<std::vector<ComputeTime>> workers(8);
    for (std::uint32_t r = 0; r < 8; ++r) {
      const ComputeTimes times(
          r == 7 ? fmt::format("normal:{},0.0134", of_the_last) : std::string("normal:1,0.0134"),
          3);
      for (int t = 0; t < 40; ++t) {
        workers[r].push_back(times.at(Rank{r}, Step{t}));
      }
    }
    return workers;
  };
  const auto mean_drawn = [](const ComputeTimes& times, std::uint32_t rank) {
    double sum = 0;
    for (int t = 0; t < 20'000; ++t) {
      const ComputeTime drawn = times.at(Rank{rank}, Step{t});
      sum += seconds(drawn.forward + drawn.backward) / 20'000;
    }
    return sum;
  };
  const ComputeTimes alike(measured(1), 5);
  const ComputeTimes one_slow(measured(1.2), 5);
  for (std::uint32_t r = 0; r < 8; ++r) {
    EXPECT_NEAR(mean_drawn(alike, r), alike.mean(), 0.004) << r;
    EXPECT_NEAR(mean_drawn(one_slow, r), r == 7 ? 1.2 : 1, 0.06) << r;
  }
  EXPECT_GT(mean_drawn(one_slow, 7), 1.15);
}

TEST(ComputeTimes, RefusalsOfDistributions) {
  const auto refused = [](const std::string& text) {
    return refusal([&] { static_cast<void>(ComputeTimes(text, 0)); });
  };
  EXPECT_EQ(refused("normal:1"),
            "computation 'normal:1': write MEAN,VARIANCE, in seconds and seconds²");
  EXPECT_EQ(refused("normal:0,1"), "computation 'normal:0,1': the mean must be more than 0");
  EXPECT_EQ(refused("lognormal:1,-1"),
            "computation 'lognormal:1,-1': '-1' is not a variance; allowed are 0 to 1000000");
  EXPECT_EQ(refused("constant:x"),
            "computation 'constant:x': 'x' is not a time; allowed are 0 to 3600 seconds");
}

}  // namespace
}  // namespace starling
