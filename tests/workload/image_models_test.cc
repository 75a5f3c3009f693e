#include "starling/workload/image_models.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include "starling/workload/image_tensors.h"
#include "tests/workload/temporary.h"

namespace starling::workload {
namespace {

constexpr ImageShape kGrey{.channels = 1, .height = 28, .width = 28, .classes = 10};
constexpr ImageShape kColour{.channels = 3, .height = 32, .width = 32, .classes = 10};

at::Tensor input_of(const ImageShape& shape, std::int64_t count) {
  return at::linspace(
             -1, 1, static_cast<std::int64_t>(shape.channels * shape.height * shape.width) * count)
      .reshape({count, static_cast<std::int64_t>(shape.channels),
                static_cast<std::int64_t>(shape.height), static_cast<std::int64_t>(shape.width)});
}

std::int64_t parameters_of(std::string_view name, const ImageShape& shape) {
  std::int64_t count = 0;
  for (const auto& parameter : make_image_model(name, shape, 1)->module().parameters()) {
    count += parameter.numel();
  }
  return count;
}

TEST(ImageModels, AsManyParametersAsPublished) {
  EXPECT_EQ(parameters_of("mlp", kGrey), 535'818);
  EXPECT_EQ(parameters_of("mlp", kColour), 1'707'274);
  EXPECT_EQ(parameters_of("cnn", kGrey), 454'922);
  EXPECT_EQ(parameters_of("cnn", kColour), 579'402);
  // 8 (9 + 1), 16 (72 + 1), 64 (784 + 1), 10 (64 + 1)
  EXPECT_EQ(parameters_of("small-cnn", kGrey), 80 + 1'168 + 50'240 + 650);
  EXPECT_EQ(parameters_of("resnet20", kColour), 269'722);
}

TEST(ImageModels, ScoresForEveryImageAndGradientsForEveryParameter) {
  for (const std::string_view name : image_model_names()) {
    for (ImageShape shape : {kGrey, kColour, ImageShape{2, 9, 13, 7}}) {
      SCOPED_TRACE(std::string(name));
      const auto model = make_image_model(name, shape, 1);
      const at::Tensor scores = model->forward(input_of(shape, 5));
      EXPECT_EQ(scores.sizes(), (std::vector<std::int64_t>{5, static_cast<int>(shape.classes)}));
      EXPECT_TRUE(scores.isfinite().all().item<bool>());
      EXPECT_GT(scores.std().item<double>(), 1e-3);
      scores.square().sum().backward();
      for (const auto& parameter : model->module().named_parameters()) {
        ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
        EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>()) << parameter.key();
      }
    }
  }
}

TEST(ImageModels, TheSameSeedTheSameBits) {
  for (const std::string_view name : image_model_names()) {
    SCOPED_TRACE(std::string(name));
    const auto a = make_image_model(name, kColour, 7);
    torch::manual_seed(99);  // nothing to it
    const auto b = make_image_model(name, kColour, 7);
    const auto c = make_image_model(name, kColour, 8);
    const auto pa = a->module().named_parameters();
    const auto pb = b->module().named_parameters();
    const auto pc = c->module().named_parameters();
    ASSERT_GT(pa.size(), 0u);
    for (const auto& parameter : pa) {
      const at::Tensor& value = parameter.value();
      EXPECT_TRUE(value.equal(pb[parameter.key()])) << parameter.key();
      const bool is_norm = parameter.key().find("norm") != std::string::npos;
      EXPECT_EQ(value.equal(pc[parameter.key()]), is_norm) << parameter.key();
    }
    EXPECT_TRUE(a->forward(input_of(kColour, 2)).equal(b->forward(input_of(kColour, 2))));
  }
}

// Layers begin with the spread that keeps signals alive.
TEST(ImageModels, InitialSpread) {
  const auto mlp = make_image_model("mlp", kGrey, 3)->module().named_parameters();
  EXPECT_NEAR(mlp["first.weight"].std().item<double>(), 1 / std::sqrt(3 * 784.0), 1e-4);
  EXPECT_LE(mlp["first.weight"].abs().max().item<double>(), 1 / std::sqrt(784.0) * 1.000001);
  EXPECT_NEAR(mlp["first.weight"].mean().item<double>(), 0, 2e-4);
  const auto resnet = make_image_model("resnet20", kColour, 3)->module().named_parameters();
  EXPECT_NEAR(resnet["stage64_block2.second.weight"].std().item<double>(),
              std::sqrt(2 / (9 * 64.0)), 1e-3);
  EXPECT_TRUE(resnet["first_norm.weight"].equal(at::ones({16})));
}

// With the residual branches switched off only shortcuts are left: every second pixel where the
// image shrinks, zeros in the new channels, half of them on either side.
TEST(ImageModels, ShortcutsOfResnet) {
  const at::NoGradGuard no_grad;
  const auto model = make_image_model("resnet20", kColour, 3);
  EXPECT_EQ(model->module().named_parameters().size(), 1u + 2 + 9 * 6 + 2);
  EXPECT_EQ(model->module().named_buffers().size(), 19u * 3);
  auto parameters = model->module().named_parameters();
  for (auto& parameter : parameters) {
    if (parameter.key().ends_with("second_norm.weight")) {
      parameter.value().zero_();
    }
  }
  model->module().eval();
  const at::Tensor images = input_of(kColour, 2);
  const at::Tensor first =
      at::relu(at::conv2d(images, parameters["first.weight"], {}, 1, 1) / std::sqrt(1 + 1e-5));
  const at::Tensor kept = first.slice(2, 0, 32, 4).slice(3, 0, 32, 4).mean({2, 3});
  const at::Tensor features = at::constant_pad_nd(kept, {24, 24});
  const at::Tensor expected =
      at::linear(features, parameters["last.weight"], parameters["last.bias"]);
  EXPECT_LT((model->forward(images) - expected).abs().max().item<double>(), 1e-5);
}

TEST(ImageModels, Refusals) {
  EXPECT_EQ(refusal([] { make_image_model("resnet50", kColour, 1); }),
            "unknown model 'resnet50'; did you mean 'resnet20'?");
  EXPECT_EQ(refusal([] { make_image_model("nn", kColour, 1); }),
            "unknown model 'nn'; did you mean 'cnn'?");
  EXPECT_EQ(refusal([] { make_image_model("cnn", {.height = 3}, 1); }),
            "cnn takes images of 4 x 4 pixels or more, and 2 classes or more");
}

TEST(ImageTensors, NormalisedByChannel) {
  const Images images{.pixels = {0, 51, 102, 153, 255, 0, 51, 255},
                      .labels = {4, 9},
                      .count = 2,
                      .channels = 2,
                      .height = 1,
                      .width = 2,
                      .classes = 10,
                      .mean = {0.5, 0.2},
                      .deviation = {0.25, 0.1}};
  const std::vector<std::uint32_t> indices = {1, 0, 1};
  const ImageBatch batch = image_batch(images, indices);
  EXPECT_EQ(batch.data.sizes(), (std::vector<std::int64_t>{3, 2, 1, 2}));
  EXPECT_TRUE(batch.target.equal(at::tensor(std::vector<std::int64_t>{9, 4, 9})));
  const at::Tensor expected =
      at::tensor({2.0, -2.0, 0.0, 8.0, -2.0, -1.2, 2.0, 4.0, 2.0, -2.0, 0.0, 8.0})
          .view({3, 2, 1, 2});
  EXPECT_LT((batch.data - expected).abs().max().item<double>(), 1e-5);
  EXPECT_TRUE(image_range(images, 1, 1).data.equal(batch.data.slice(0, 0, 1)));
  const std::vector<std::uint32_t> outside = {2};
  EXPECT_EQ(error_of(ErrorCode::Bug, [&] { image_batch(images, outside); }).substr(0, 23),
            "there is no image 2 of ");
}

}  // namespace
}  // namespace starling::workload
