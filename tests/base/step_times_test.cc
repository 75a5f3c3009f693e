#include "starling/base/step_times.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "starling/base/error.h"

namespace starling {
namespace {

// As published: mean and deviation, or what of the distribution is known.
TEST(StepTimes, AreAsThePapersShowThem) {
  const StepTimes translation = StepTimes::published("translation");
  EXPECT_NEAR(translation.mean(), 0.293, 0.002);
  EXPECT_NEAR(translation.deviation(), 0.135, 0.002);
  EXPECT_NEAR(translation.quantile(0.25), 0.193, 0.01);
  EXPECT_NEAR(translation.quantile(0.5), 0.261, 0.01);
  EXPECT_NEAR(translation.quantile(0.75), 0.364, 0.01);
  const StepTimes navigation = StepTimes::published("navigation");
  EXPECT_NEAR(navigation.mean(), 2.09, 0.02);
  EXPECT_NEAR(navigation.deviation(), 1.46, 0.01);
  EXPECT_NEAR(navigation.quantile(0.5), 1.806, 1e-9);
  EXPECT_EQ(navigation.quantile(1), 43.5);
  struct Known {
    const char* name;
    double least, most, mean, deviation;
  };
  for (const Known& known :
       {Known{"video", 0.201, 3.410, 1.235, 0.706}, Known{"sentences", 0.179, 3.482, 0.475, 0.144},
        Known{"cloud", 0.399, 1.892, 0.454, 0.116}}) {
    const StepTimes times = StepTimes::published(known.name);
    EXPECT_NEAR(times.quantile(0), known.least, 1e-9) << known.name;
    EXPECT_NEAR(times.quantile(1), known.most, 1e-9) << known.name;
    EXPECT_NEAR(times.mean(), known.mean, 0.002 * known.mean) << known.name;
    EXPECT_NEAR(times.deviation(), known.deviation, 0.01 * known.deviation) << known.name;
  }
}

TEST(StepTimes, DrawsComeFromTheDistribution) {
  for (const std::string_view name : StepTimes::names()) {
    const StepTimes times = StepTimes::published(name);
    double sum = 0;
    double squares = 0;
    constexpr int kDraws = 100'000;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const double time = times.draw(Random(4), i);
      ASSERT_GE(time, times.quantile(0));
      ASSERT_LE(time, times.quantile(1));
      sum += time;
      squares += time * time;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, times.mean(), 5 * times.deviation() / std::sqrt(kDraws)) << name;
    EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean), times.deviation(),
                0.15 * times.deviation())
        << name;
  }
}

TEST(StepTimes, QuantilesRiseWithinAndBetweenBins) {
  const std::array<StepTimes::Bin, 3> bins = {{{1, 2, 1}, {4, 4, 2}, {6, 8, 1}}};
  const StepTimes times(bins);
  EXPECT_EQ(times.quantile(0), 1);
  EXPECT_EQ(times.quantile(0.125), 1.5);
  EXPECT_EQ(times.quantile(0.5), 4);
  EXPECT_EQ(times.quantile(0.875), 7);
  EXPECT_EQ(times.quantile(1), 8);
  EXPECT_EQ(times.mean(), (1.5 + 4 + 4 + 7) / 4);
}

TEST(StepTimes, Refusals) {
  EXPECT_THROW(StepTimes::published("navigatoin"), Error);
  const std::array<StepTimes::Bin, 1> nothing = {{{1, 2, 0}}};
  EXPECT_THROW(static_cast<void>(StepTimes{nothing}), Error);
  const std::array<StepTimes::Bin, 1> backwards = {{{2, 1, 1}}};
  EXPECT_THROW(static_cast<void>(StepTimes{backwards}), Error);
}

}  // namespace
}  // namespace starling
