#include "starling/train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/random.h"

namespace starling::train {
namespace {

const std::vector<double> kGradients = {1, -0.5, 0.4, 2, -1, 0.75, 0.1};

template <typename T>
std::vector<T> random_gradients(std::size_t size, std::uint64_t seed) {
  const Random random(seed);
  std::vector<T> result(size);
  for (std::size_t i = 0; i < size; ++i) {
    result[i] = static_cast<T>(random.normal(i));
  }
  return result;
}

// A model and its optimizer.
template <typename T>
struct Trained {
  Trained(const Fused& config, std::vector<T> start)
      : model(std::move(start)), optimizer(config, comm::kTypeOf<T>, model.size()) {}

  bool step(const std::vector<T>& gradient, const ParameterGroup& group = {},
            double lr_factor = 1) {
    return piece(0, model.size(), ++t, gradient, group, lr_factor);
  }

  bool piece(std::size_t begin, std::size_t size, std::int64_t number,
             const std::vector<T>& gradient, const ParameterGroup& group = {},
             double lr_factor = 1) {
    return optimizer.update(begin, number, lr_factor, group,
                            kernels::Streams<T>{.size = size,
                                                .from = model.data() + begin,
                                                .into = model.data() + begin,
                                                .gradient = gradient.data() + begin});
  }

  std::vector<T> remembered(std::string_view name) {
    for (const FusedOptimizer::State& state : optimizer.state()) {
      if (state.name == name) {
        std::vector<T> result(state.values.elements());
        std::memcpy(result.data(), state.values.blob.data, state.values.blob.size);
        return result;
      }
    }
    ADD_FAILURE() << "no state " << name;
    return {};
  }

  std::vector<T> model;
  FusedOptimizer optimizer;
  std::int64_t t = 0;
};

std::vector<double> course(const Fused& config, double start) {
  Trained<double> trained(config, {start});
  std::vector<double> result;
  for (const double g : kGradients) {
    EXPECT_TRUE(trained.step({g}));
    result.push_back(trained.model[0]);
  }
  return result;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 1e-12) << "step " << i + 1;
  }
}

// Courses that were computed without this code, to twelve digits.
TEST(Optimizer, AdamOfAWindowOfOne) {
  const std::vector<double> wanted = {-0.099999999000, -0.126633702629, -0.167552684264,
                                      -0.234634185281, -0.265155622013, -0.305221575351,
                                      -0.342105600475};
  expect_near(course(AccumAdam{.lr = 0.1, .window = 1}, 0), wanted);
  expect_near(course(Adam{.lr = 0.1}, 0), wanted);
}

TEST(Optimizer, AccumulatedAdam) {
  expect_near(course(AccumAdam{.lr = 0.1, .window = 2}, 0),
              {-0.099999999000, -0.000000001000, -0.098611780913, -0.180758356170, -0.192169820913,
               -0.282557513342, -0.336285673491});
}

TEST(Optimizer, AccumulatedAdamWithDecoupledDecay) {
  expect_near(course(AccumAdamW{.lr = 0.1, .weight_decay = 0.1, .window = 2}, 1),
              {0.890000001000, 0.981099998990, 0.872677219087, 0.781803871639, 0.762574368179,
               0.664560932069, 0.604187162599});
}

template <typename T>
void expect_same_course(const Fused& one, const Fused& other) {
  Trained<T> a(one, random_gradients<T>(37, 1));
  Trained<T> b(other, random_gradients<T>(37, 1));
  for (std::uint64_t t = 1; t <= 20; ++t) {
    const std::vector<T> gradient = random_gradients<T>(37, 100 + t);
    EXPECT_TRUE(a.step(gradient));
    EXPECT_TRUE(b.step(gradient));
    ASSERT_EQ(a.model, b.model) << "step " << t;
  }
}

TEST(Optimizer, AWindowOfOneIsAdamBitForBit) {
  expect_same_course<float>(AccumAdam{.weight_decay = 0.1, .window = 1}, Adam{.weight_decay = 0.1});
  expect_same_course<double>(AccumAdam{.weight_decay = 0.1, .window = 1},
                             Adam{.weight_decay = 0.1});
  expect_same_course<float>(AccumAdamW{.window = 1}, AdamW{});
  expect_same_course<double>(AccumAdamW{.window = 1}, AdamW{});
}

TEST(Optimizer, AConstantGradientMovesByTheLearningRate) {
  for (const std::uint32_t window : {1u, 2u, 3u, 8u}) {
    for (const double g : {3.0, -0.01}) {
      Trained<double> trained(AccumAdam{.lr = 0.1, .window = window}, {0});
      for (int t = 1; t <= 30; ++t) {
        EXPECT_TRUE(trained.step({g}));
        ASSERT_NEAR(trained.model[0], g > 0 ? -0.1 * t : 0.1 * t, 1e-5)
            << "window " << window << ", step " << t;
      }
    }
  }
}

TEST(Optimizer, AfterAWindowMomentsAreThoseOfTheMeans) {
  constexpr std::size_t kSize = 21;
  Trained<double> accumulated(AccumAdam{.window = 4}, std::vector<double>(kSize, 1));
  Trained<double> plain(Adam{}, std::vector<double>(kSize, 1));
  for (std::uint64_t t = 1; t <= 20; t += 4) {
    std::vector<double> mean(kSize, 0);
    for (std::uint64_t j = 0; j < 4; ++j) {
      const std::vector<double> gradient = random_gradients<double>(kSize, t + j);
      EXPECT_TRUE(accumulated.step(gradient));
      for (std::size_t i = 0; i < kSize; ++i) {
        mean[i] += gradient[i] / 4;
      }
    }
    EXPECT_TRUE(plain.step(mean));
    EXPECT_EQ(accumulated.remembered("first_moment"), plain.remembered("first_moment"));
    EXPECT_EQ(accumulated.remembered("second_moment"), plain.remembered("second_moment"));
    EXPECT_EQ(accumulated.remembered("accumulated"), std::vector<double>(kSize, 0));
  }
}

TEST(Optimizer, ResumesInTheMiddleOfAWindow) {
  const std::vector<Fused> configs = {AccumAdamW{.window = 4}, Adam{},
                                      SGD{.momentum = 0.9, .dampening = 0.2}};
  for (const Fused& config : configs) {
    Trained<float> trained(config, random_gradients<float>(50, 1));
    for (std::uint64_t t = 1; t <= 6; ++t) {
      trained.step(random_gradients<float>(50, t));
    }
    Trained<float> resumed(config, trained.model);
    resumed.t = trained.t;
    const auto from = trained.optimizer.state();
    const auto to = resumed.optimizer.state();
    ASSERT_EQ(from.size(), to.size());
    ASSERT_FALSE(from.empty());
    for (std::size_t i = 0; i < from.size(); ++i) {
      ASSERT_EQ(from[i].name, to[i].name);
      ASSERT_EQ(from[i].values.blob.size, 50 * sizeof(float));
      std::memcpy(to[i].values.blob.data, from[i].values.blob.data, from[i].values.blob.size);
    }
    for (std::uint64_t t = 7; t <= 20; ++t) {
      trained.step(random_gradients<float>(50, t));
      resumed.step(random_gradients<float>(50, t));
      ASSERT_EQ(trained.model, resumed.model) << name_of(config) << ", step " << t;
    }
  }
}

TEST(Optimizer, SgdAsTorchDefinesIt) {
  for (const SGD& c : {SGD{.lr = 0.1}, SGD{.lr = 0.1, .weight_decay = 0.2},
                       SGD{.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.2},
                       SGD{.lr = 0.1, .momentum = 0.9, .nesterov = true}}) {
    double x = 2;
    double b = 0;
    std::vector<double> wanted;
    for (std::size_t t = 0; t < kGradients.size(); ++t) {
      const double g = kGradients[t] + c.weight_decay * x;
      b = t == 0 ? g : c.momentum * b + (1 - c.dampening) * g;
      x -= c.lr * (c.momentum == 0 ? g : c.nesterov ? g + c.momentum * b : b);
      wanted.push_back(x);
    }
    expect_near(course(c, 2), wanted);
  }
}

TEST(Optimizer, DecayActsOnTheMixedModel) {
  const double from = 1;
  const double result = 3;
  const double gradient = 0.5;
  double into = 0;
  const kernels::Streams<double> streams{.size = 1,
                                         .from = &from,
                                         .into = &into,
                                         .result = &result,
                                         .of_from = 0.25,
                                         .of_result = 0.75,
                                         .gradient = &gradient};
  FusedOptimizer decoupled(AdamW{.lr = 0.1, .weight_decay = 0.1}, comm::Type::Float64, 1);
  EXPECT_TRUE(decoupled.update(0, 1, 1, {}, streams));
  EXPECT_NEAR(into, 2.5 * (1 - 0.1 * 0.1) - 0.1, 1e-8);
  FusedOptimizer coupled(SGD{.lr = 0.1, .weight_decay = 0.1}, comm::Type::Float64, 1);
  EXPECT_TRUE(coupled.update(0, 1, 1, {}, streams));
  EXPECT_NEAR(into, 2.5 - 0.1 * (0.5 + 0.1 * 2.5), 1e-12);
}

TEST(Optimizer, GroupsDifferInRateAndDecay) {
  Trained<double> trained(SGD{.lr = 0.1, .weight_decay = 0.5}, {2});
  trained.step({1}, {.lr_factor = 0.5, .decay_factor = 0}, 0.1);
  EXPECT_NEAR(trained.model[0], 2 - 0.1 * 0.5 * 0.1, 1e-15);
  Trained<double> decayed(AdamW{.lr = 0.1, .weight_decay = 0.5}, {2});
  decayed.step({0}, {.lr_factor = 3, .decay_factor = 2}, 0.1);
  EXPECT_NEAR(decayed.model[0], 2 * (1 - 0.1 * 3 * 0.1 * 0.5 * 2), 1e-15);
}

TEST(Optimizer, PiecesHaveStepsOfTheirOwn) {
  const Fused config = AccumAdam{.lr = 0.1, .window = 2};
  const std::vector<double> expected = course(config, 0);
  Trained<double> trained(config, std::vector<double>(3, 0));
  for (std::size_t t = 0; t < 4; ++t) {  // the piece in the middle takes every step, the last two
    const double g = kGradients[t];
    trained.piece(1, 1, static_cast<std::int64_t>(t) + 1, {9, g, 9});
    if (t % 2 == 1) {
      const double late = kGradients[t / 2];
      trained.piece(2, 1, static_cast<std::int64_t>(t / 2) + 1, {9, 9, late});
    }
  }
  EXPECT_EQ(trained.model, (std::vector<double>{0, expected[3], expected[1]}));
}

TEST(Optimizer, WithoutAGradientAPieceIsOnlyMixed) {
  FusedOptimizer optimizer(Adam{}, comm::Type::Float32, 1);
  const float from = 1;
  const float result = 2;
  float into = 0;
  float copy = 0;
  EXPECT_TRUE(optimizer.update(0, 0, 1, {},
                               kernels::Streams<float>{.size = 1,
                                                       .from = &from,
                                                       .into = &into,
                                                       .copy = &copy,
                                                       .result = &result,
                                                       .of_from = 0.5f,
                                                       .of_result = 0.5f}));
  EXPECT_EQ(into, 1.5f);
  EXPECT_EQ(copy, 1.5f);
}

TEST(Optimizer, SaysWhetherAllIsFinite) {
  Trained<float> trained(AdamW{}, std::vector<float>(9, 1));
  std::vector<float> gradient(9, 1);
  EXPECT_TRUE(trained.step(gradient));
  gradient[4] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(trained.step(gradient));
}

TEST(Optimizer, StateHasNamesAndBeginsAtZero) {
  const auto names = [](const Fused& config) {
    FusedOptimizer optimizer(config, comm::Type::Float64, 5);
    std::string result;
    for (const FusedOptimizer::State& state : optimizer.state()) {
      result += std::string(state.name) + " ";
      EXPECT_EQ(state.values.elements(), 5u);
      const std::vector<std::byte> zeros(state.values.blob.size);
      EXPECT_EQ(std::memcmp(state.values.blob.data, zeros.data(), zeros.size()), 0);
    }
    return result;
  };
  EXPECT_EQ(names(SGD{}), "");
  EXPECT_EQ(names(SGD{.momentum = 0.9}), "momentum ");
  EXPECT_EQ(names(AdamW{}), "first_moment second_moment ");
  EXPECT_EQ(names(AccumAdamW{.window = 1}), "first_moment second_moment ");
  EXPECT_EQ(names(AccumAdam{}), "first_moment second_moment accumulated ");
}

TEST(Optimizer, NamesAndRates) {
  EXPECT_EQ(name_of(SGD{}), "sgd");
  EXPECT_EQ(name_of(Adam{}), "adam");
  EXPECT_EQ(name_of(AdamW{}), "adamw");
  EXPECT_EQ(name_of(AccumAdam{}), "accum-adam");
  EXPECT_EQ(name_of(AccumAdamW{}), "accum-adamw");
  EXPECT_EQ(lr_of(SGD{.lr = 0.3}), 0.3);
}

std::string refusal(const Fused& config, comm::Type type = comm::Type::Float32) {
  try {
    FusedOptimizer(config, type, 10);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Input);
    return error.what();
  }
  return "";
}

TEST(Optimizer, RefusesWhatIsOutOfRange) {
  EXPECT_EQ(refusal(SGD{.lr = -1}),
            "sgd: the learning rate must be a number of at least 0, and is -1");
  EXPECT_EQ(refusal(Adam{.lr = NAN}),
            "adam: the learning rate must be a number of at least 0, and is nan");
  EXPECT_EQ(refusal(AdamW{.weight_decay = -0.1}),
            "adamw: weight decay must be a number of at least 0, and is -0.1");
  EXPECT_EQ(refusal(SGD{.momentum = -0.5}),
            "sgd: momentum must be a number of at least 0, and is -0.5");
  EXPECT_EQ(refusal(SGD{.dampening = INFINITY}), "sgd: dampening must be a number, and is inf");
  EXPECT_EQ(refusal(Adam{.beta1 = 1}), "adam: beta1 must be at least 0 and below 1, and is 1");
  EXPECT_EQ(refusal(AccumAdam{.beta2 = -0.1}),
            "accum-adam: beta2 must be at least 0 and below 1, and is -0.1");
  EXPECT_EQ(refusal(Adam{.beta1 = NAN}), "adam: beta1 must be at least 0 and below 1, and is nan");
  EXPECT_EQ(refusal(AdamW{.epsilon = 0}),
            "adamw: epsilon must be above 0 (as a float32), and is 0");
  EXPECT_EQ(refusal(AdamW{.epsilon = 1e-60}),
            "adamw: epsilon must be above 0 (as a float32), and is 1e-60");
  EXPECT_EQ(refusal(AdamW{.epsilon = 1e-60}, comm::Type::Float64), "");
  EXPECT_EQ(refusal(AccumAdamW{.window = 0}),
            "accum-adamw: the window must be at least 1 step, and is 0");
  const std::string nesterov = "sgd: nesterov needs momentum and no dampening, and has momentum ";
  EXPECT_EQ(refusal(SGD{.nesterov = true}), nesterov + "0 and dampening 0");
  EXPECT_EQ(refusal(SGD{.momentum = 0.9, .dampening = 0.1, .nesterov = true}),
            nesterov + "0.9 and dampening 0.1");
  EXPECT_EQ(refusal(SGD{.momentum = 0.9, .nesterov = true}), "");
}

TEST(Optimizer, PiecesLieInsideTheModel) {
  Trained<float> trained(Adam{}, std::vector<float>(4, 1));
  const std::vector<float> gradient(8, 1);
  EXPECT_THROW(trained.piece(2, 3, 1, gradient), Error);
  EXPECT_THROW(trained.piece(5, 0, 1, gradient), Error);
  EXPECT_THROW(trained.piece(0, 4, 0, gradient), Error);
  EXPECT_TRUE(trained.piece(4, 0, 1, gradient));
  EXPECT_THROW(trained.optimizer.update(0, 1, 1, {}, kernels::Streams<double>{}), Error);
}

}  // namespace
}  // namespace starling::train
