// Intervals against tables and by hand; verdicts at their borders.
#include "starling/tool/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace starling::tool {
namespace {

TEST(StudentQuantile, IsThatOfTheTables) {
  const std::vector<std::pair<std::size_t, double>> table = {
      {1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},   {6, 2.447},
      {9, 2.262},  {10, 2.228}, {29, 2.045}, {30, 2.042}, {120, 1.980}, {999, 1.962}};
  for (const auto& [degrees, t] : table) {
    EXPECT_NEAR(student_quantile(degrees), t, 0.0005) << degrees << " degrees";
  }
}

TEST(Interval, IsTheMeanAndItsError) {
  // Mean 2, standard deviation 1, error 1/sqrt(3).
  const auto interval = interval_of(std::vector<double>{1, 2, 3});
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->mean, 2);
  EXPECT_NEAR(interval->high, 2 + 4.302653 / std::sqrt(3.0), 1e-5);
  EXPECT_NEAR(interval->low, 2 - 4.302653 / std::sqrt(3.0), 1e-5);
}

TEST(Interval, NeedsTwoValues) {
  EXPECT_FALSE(interval_of({}));
  EXPECT_FALSE(interval_of(std::vector<double>{3}));
  EXPECT_FALSE(interval_of_ratios(std::vector<double>{3}));
}

TEST(Interval, OfEqualValuesHasNoWidth) {
  const auto interval = interval_of(std::vector<double>{0.25, 0.25, 0.25, 0.25});
  ASSERT_TRUE(interval);
  EXPECT_DOUBLE_EQ(interval->low, 0.25);
  EXPECT_DOUBLE_EQ(interval->high, 0.25);
}

TEST(Ratios, AreTheSameBothWaysRound) {
  const auto there = interval_of_ratios(std::vector<double>{2, 8});
  const auto back = interval_of_ratios(std::vector<double>{0.5, 0.125});
  ASSERT_TRUE(there && back);
  EXPECT_NEAR(there->mean, 4, 1e-12);
  EXPECT_NEAR(back->mean, 1 / there->mean, 1e-12);
  EXPECT_NEAR(back->low, 1 / there->high, 1e-9);
  EXPECT_NEAR(back->high, 1 / there->low, 1e-9);
  EXPECT_NEAR(geometric_mean_of(std::vector<double>{2, 8}), 4, 1e-12);
}

Verdict judged(double low, double high) {
  return judge(Interval{.mean = (low + high) / 2, .low = low, .high = high}, 0.5);
}

TEST(Verdict, ComparesTheIntervalWithTheMargin) {
  EXPECT_EQ(judged(-0.4, 0.4), Verdict::Equal);
  EXPECT_EQ(judged(-0.5, 0.5), Verdict::Equal);
  EXPECT_EQ(judged(0.1, 0.4), Verdict::Equal);  // better, but by less than matters
  EXPECT_EQ(judged(0.1, 0.6), Verdict::Better);
  EXPECT_EQ(judged(2, 3), Verdict::Better);
  EXPECT_EQ(judged(-0.6, -0.1), Verdict::Worse);
  EXPECT_EQ(judged(-0.1, 0.6), Verdict::Undecided);
  EXPECT_EQ(judged(-3, 3), Verdict::Undecided);
  EXPECT_EQ(judged(0, 0.6), Verdict::Undecided);
  EXPECT_EQ(judge(std::nullopt, 0.5), Verdict::None);
}

TEST(Verdict, WithoutAMarginOnlyNothingAtAllIsEqual) {
  EXPECT_EQ(judge(Interval{}, 0), Verdict::Equal);
  EXPECT_EQ(judge(Interval{.mean = 0.1, .low = 0, .high = 0.2}, 0), Verdict::Undecided);
}

TEST(Pace, ComparesTheIntervalWithOne) {
  EXPECT_EQ(judge_pace(Interval{.mean = 2, .low = 1.1, .high = 3}), Pace::Sooner);
  EXPECT_EQ(judge_pace(Interval{.mean = 0.5, .low = 0.3, .high = 0.9}), Pace::Later);
  EXPECT_EQ(judge_pace(Interval{.mean = 1.1, .low = 0.9, .high = 1.4}), Pace::Undecided);
  EXPECT_EQ(judge_pace(std::nullopt), Pace::None);
}

TEST(Names, AreThoseOfTheReport) {
  EXPECT_EQ(name_of(Verdict::Better), "better");
  EXPECT_EQ(name_of(Verdict::None), "none");
  EXPECT_EQ(name_of(Pace::Sooner), "sooner");
  EXPECT_EQ(name_of(Pace::None), "none");
}

}  // namespace
}  // namespace starling::tool
