// The fused optimizers against those of torch, in float, on the same random gradients.
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "starling/base/random.h"
#include "starling/train/optimizer.h"

namespace starling::train {
namespace {

constexpr std::int64_t kSize = 1003;
constexpr int kSteps = 100;

std::unique_ptr<torch::optim::Optimizer> torch_of(const Fused& config,
                                                  std::vector<at::Tensor> parameters) {
  if (const auto* sgd = std::get_if<SGD>(&config)) {
    return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                               torch::optim::SGDOptions(sgd->lr)
                                                   .momentum(sgd->momentum)
                                                   .dampening(sgd->dampening)
                                                   .weight_decay(sgd->weight_decay)
                                                   .nesterov(sgd->nesterov));
  }
  if (const auto* adam = std::get_if<Adam>(&config)) {
    return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                                torch::optim::AdamOptions(adam->lr)
                                                    .betas({adam->beta1, adam->beta2})
                                                    .eps(adam->epsilon)
                                                    .weight_decay(adam->weight_decay));
  }
  const auto& adamw = std::get<AdamW>(config);
  return std::make_unique<torch::optim::AdamW>(std::move(parameters),
                                               torch::optim::AdamWOptions(adamw.lr)
                                                   .betas({adamw.beta1, adamw.beta2})
                                                   .eps(adamw.epsilon)
                                                   .weight_decay(adamw.weight_decay));
}

std::vector<float> random_numbers(std::uint64_t seed) {
  const Random random(seed);
  std::vector<float> result(kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    result[i] = static_cast<float>(random.normal(i));
  }
  return result;
}

void expect_as_torch(const Fused& config) {
  std::vector<float> model = random_numbers(1);
  at::Tensor parameter = torch::from_blob(model.data(), {kSize}).clone().requires_grad_(true);
  const auto theirs = torch_of(config, {parameter});
  FusedOptimizer ours(config, comm::Type::Float32, kSize);
  for (int t = 1; t <= kSteps; ++t) {
    std::vector<float> gradient = random_numbers(100 + static_cast<std::uint64_t>(t));
    parameter.mutable_grad() = torch::from_blob(gradient.data(), {kSize}).clone();
    theirs->step();
    ASSERT_TRUE(ours.update(0, t, 1, {},
                            kernels::Streams<float>{.size = kSize,
                                                    .from = model.data(),
                                                    .into = model.data(),
                                                    .gradient = gradient.data()}));
  }
  // Relative to 1 where an element is smaller: they start there, and some pass through zero.
  const auto* wanted = parameter.data_ptr<float>();
  for (std::size_t i = 0; i < kSize; ++i) {
    ASSERT_NEAR(model[i], wanted[i], 1e-6 * std::max(1.0f, std::abs(wanted[i]))) << i;
  }
  EXPECT_NE(model, random_numbers(1));
}

TEST(TorchOptimizer, Sgd) {
  expect_as_torch(SGD{.lr = 0.1});
  expect_as_torch(SGD{.lr = 0.1, .weight_decay = 0.01});
  expect_as_torch(SGD{.lr = 0.01, .momentum = 0.9});
  expect_as_torch(SGD{.lr = 0.01, .momentum = 0.9, .weight_decay = 0.01});
  expect_as_torch(SGD{.lr = 0.01, .momentum = 0.9, .dampening = 0.5});
  expect_as_torch(SGD{.lr = 0.01, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
}

TEST(TorchOptimizer, Adam) {
  expect_as_torch(Adam{});
  expect_as_torch(Adam{.lr = 0.01, .weight_decay = 0.01});
  expect_as_torch(Adam{.lr = 0.01, .beta1 = 0.5, .beta2 = 0.98, .epsilon = 1e-4});
}

TEST(TorchOptimizer, AdamW) {
  expect_as_torch(AdamW{});
  expect_as_torch(AdamW{.lr = 0.01, .weight_decay = 0});
  expect_as_torch(AdamW{.lr = 0.01, .weight_decay = 0.5});
}

}  // namespace
}  // namespace starling::train
