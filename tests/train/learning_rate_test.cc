#include "starling/train/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "starling/base/error.h"

namespace starling::train {
namespace {

TEST(LearningRate, Constant) {
  EXPECT_EQ(constant_rate()(0), 1);
  EXPECT_EQ(constant_rate()(1e12), 1);
}

TEST(LearningRate, WarmUpAndCosine) {
  const LearningRate rate = warmup_cosine(100, 500, 0.01, 0.1);
  EXPECT_DOUBLE_EQ(rate(0), 0.01);
  EXPECT_DOUBLE_EQ(rate(50), 0.505);
  EXPECT_DOUBLE_EQ(rate(100), 1);
  EXPECT_DOUBLE_EQ(rate(200), 0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(rate(300), 0.55);
  EXPECT_DOUBLE_EQ(rate(500), 0.1);
  EXPECT_DOUBLE_EQ(rate(1e9), 0.1);
}

TEST(LearningRate, CosineWithoutWarmUpAndWarmUpOnly) {
  const LearningRate cosine = warmup_cosine(0, 100);
  EXPECT_DOUBLE_EQ(cosine(0), 1);
  EXPECT_DOUBLE_EQ(cosine(50), 0.5);
  EXPECT_DOUBLE_EQ(cosine(100), 0);
  const LearningRate warmup = warmup_cosine(100, 100);
  EXPECT_DOUBLE_EQ(warmup(99), 0.01 + 0.99 * 0.99);
  EXPECT_DOUBLE_EQ(warmup(100), 0);
}

TEST(LearningRate, InverseSquareRoot) {
  const LearningRate rate = inverse_square_root(4000);
  EXPECT_DOUBLE_EQ(rate(0), 0.01);
  EXPECT_DOUBLE_EQ(rate(2000), 0.505);
  EXPECT_DOUBLE_EQ(rate(4000), 1);
  EXPECT_DOUBLE_EQ(rate(16000), 0.5);
}

TEST(LearningRate, Steps) {
  const LearningRate rate = step_rate({30, 60}, 0.5);
  EXPECT_EQ(rate(0), 1);
  EXPECT_EQ(rate(29.9), 1);
  EXPECT_EQ(rate(30), 0.5);
  EXPECT_EQ(rate(59), 0.5);
  EXPECT_EQ(rate(1000), 0.25);
}

TEST(LearningRate, AsTyped) {
  const auto expect_same = [](std::string_view text, const LearningRate& wanted) {
    const LearningRate rate = parse_learning_rate(text, 2000);
    for (double samples = 0; samples <= 2200; samples += 50) {
      EXPECT_DOUBLE_EQ(rate(samples), wanted(samples)) << text << " at " << samples;
    }
  };
  expect_same("constant", constant_rate());
  expect_same("cosine", warmup_cosine(0, 2000));
  expect_same("cosine:300", warmup_cosine(300, 2000));
  expect_same("cosine:5%", warmup_cosine(100, 2000));
  expect_same("sqrt:12.5%", inverse_square_root(250));
  expect_same("sqrt:4e2", inverse_square_root(400));
  expect_same("step:1000", step_rate({1000}));
  expect_same("step:50%,75%", step_rate({1000, 1500}));
  expect_same("step:500,75%:0.3", step_rate({500, 1500}, 0.3));
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Input);
    return error.what();
  }
  return "";
}

TEST(LearningRate, WhatCannotBeReadIsNamed) {
  for (const std::string text :
       {"", "linear", "constant:3", "sqrt", "sqrt:", "step", "step:", "step:1,,2", "step:1,",
        "step:1:", "cosine:", "cosine:x", "cosine:5%%", "cosine:%", "step:1:0.1:0.2"}) {
    const std::string said = refusal([&] { parse_learning_rate(text, 100); });
    EXPECT_TRUE(said.starts_with("learning rate '" + text + "': expected constant,"))
        << text << ": " << said;
  }
}

TEST(LearningRate, WhatIsOutOfRangeIsRefused) {
  for (const std::string text : {"cosine:-1", "cosine:101", "cosine:200%", "cosine:nan", "sqrt:0",
                                 "sqrt:inf", "step:2,1", "step:1,1", "step:-1", "step:1:-0.1"}) {
    EXPECT_TRUE(refusal([&] { parse_learning_rate(text, 100); }).starts_with("learning rate: "))
        << text;
  }
  EXPECT_EQ(refusal([] { parse_learning_rate("cosine", 0); }),
            "learning rate: a cosine needs to know the samples of the whole training");
  EXPECT_EQ(refusal([] { parse_learning_rate("sqrt:5%", 0); }),
            "learning rate 'sqrt:5%': per cent of what? The samples of the whole training are not "
            "known");
  EXPECT_NE(refusal([] { warmup_cosine(1, 10, -0.1); }), "");
  EXPECT_NE(refusal([] { warmup_cosine(1, 10, 0.1, 2); }), "");
  EXPECT_NE(refusal([] { step_rate({}); }), "");
}

}  // namespace
}  // namespace starling::train
