#include "starling/workload/image_models.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "starling/base/draws.h"
#include "starling/base/error.h"
#include "starling/base/suggestion.h"
#include "starling/base/time_words.h"

namespace starling::workload {
namespace {

namespace nn = torch::nn;

std::int64_t size(std::size_t n) { return static_cast<std::int64_t>(n); }

// What a model is: a module with a forward pass.
struct Network : nn::Module {
  virtual at::Tensor forward(const at::Tensor& images) = 0;
};

struct Mlp final : Network {
  explicit Mlp(const ImageShape& shape)
      : first(register_module("first",
                              nn::Linear(size(shape.channels * shape.height * shape.width), 512))),
        second(register_module("second", nn::Linear(512, 256))),
        last(register_module("last", nn::Linear(256, size(shape.classes)))) {}

  at::Tensor forward(const at::Tensor& images) override {
    return last(at::relu(second(at::relu(first(images.flatten(1))))));
  }

  nn::Linear first;
  nn::Linear second;
  nn::Linear last;
};

// Two convolutions, each with a pool behind, and two layers without.
struct CnnSize {
  std::int64_t pixels;  // of a convolution's side
  std::int64_t first;
  std::int64_t second;
  std::int64_t third;
};
constexpr CnnSize kCnn = {5, 32, 64, 128};
constexpr CnnSize kSmallCnn = {3, 8, 16, 64};

struct Cnn final : Network {
  Cnn(const ImageShape& shape, const CnnSize& by)
      : first(register_module("first", convolution(size(shape.channels), by.first, by.pixels))),
        second(register_module("second", convolution(by.first, by.second, by.pixels))),
        third(register_module(
            "third",
            nn::Linear(by.second * size((shape.height / 4) * (shape.width / 4)), by.third))),
        last(register_module("last", nn::Linear(by.third, size(shape.classes)))) {}

  static nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t pixels) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, pixels).padding(pixels / 2));
  }

  at::Tensor forward(const at::Tensor& images) override {
    // ReLU after the pool: the same values at a quarter of the cost.
    at::Tensor x = at::relu(at::max_pool2d(first(images), 2));
    x = at::relu(at::max_pool2d(second(x), 2));
    return last(at::relu(third(x.flatten(1))));
  }

  nn::Conv2d first;
  nn::Conv2d second;
  nn::Linear third;
  nn::Linear last;
};

nn::Conv2d conv3x3(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

// Two convolutions beside a shortcut. Where the image shrinks, the shortcut takes every second
// pixel and fills the new channels with zeros (option A of the paper).
struct Block final : nn::Module {
  Block(std::int64_t in, std::int64_t out)
      : grows(out != in),
        first(register_module("first", conv3x3(in, out, grows ? 2 : 1))),
        first_norm(register_module("first_norm", nn::BatchNorm2d(out))),
        second(register_module("second", conv3x3(out, out, 1))),
        second_norm(register_module("second_norm", nn::BatchNorm2d(out))),
        added((out - in) / 2) {}

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = second_norm(second(at::relu(first_norm(first(x)))));
    return at::relu(y + shortcut(x));
  }

  at::Tensor shortcut(const at::Tensor& x) const {
    if (!grows) {
      return x;
    }
    const at::Tensor half = x.slice(2, 0, c10::nullopt, 2).slice(3, 0, c10::nullopt, 2);
    return at::constant_pad_nd(half, {0, 0, 0, 0, added, added});
  }

  bool grows;
  nn::Conv2d first;
  nn::BatchNorm2d first_norm;
  nn::Conv2d second;
  nn::BatchNorm2d second_norm;
  std::int64_t added;  // channels on either side
};

struct ResNet20 final : Network {
  explicit ResNet20(const ImageShape& shape)
      : first(register_module("first", conv3x3(size(shape.channels), 16, 1))),
        first_norm(register_module("first_norm", nn::BatchNorm2d(16))),
        last(nn::Linear(64, size(shape.classes))) {
    std::int64_t channels = 16;
    for (const std::int64_t width : {16, 32, 64}) {
      for (int i = 0; i < 3; ++i) {
        const std::string name = "stage" + std::to_string(width) + "_block" + std::to_string(i);
        blocks.push_back(register_module(name, std::make_shared<Block>(channels, width)));
        channels = width;
      }
    }
    register_module("last", last);
  }

  at::Tensor forward(const at::Tensor& images) override {
    at::Tensor x = at::relu(first_norm(first(images)));
    for (const auto& block : blocks) {
      x = block->forward(x);
    }
    return last(x.mean({2, 3}));
  }

  nn::Conv2d first;
  nn::BatchNorm2d first_norm;
  std::vector<std::shared_ptr<Block>> blocks;
  nn::Linear last;
};

// Uniform in ±1/√fan-in, as torch does it, for layers with ReLU alone; normal of variance 2/fan-in
// for convolutions followed by batch norm, which have no bias (He et al.). Batch norm begins with 1
// and 0. Each parameter draws from a stream of its own, numbered in the order of registration.
void draw_parameters(nn::Module& network, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  std::uint64_t number = 0;
  for (const auto& layer : network.modules(false)) {
    std::vector<at::Tensor> drawn = layer->parameters(false);
    const bool is_norm = dynamic_cast<nn::BatchNorm2dImpl*>(layer.get()) != nullptr;
    if (drawn.empty() || is_norm) {
      continue;
    }
    const double fan_in =
        static_cast<double>(drawn[0].numel()) / static_cast<double>(drawn[0].size(0));
    const bool has_bias = drawn.size() > 1;
    for (at::Tensor& parameter : drawn) {
      const Random random = draws(seed, Purpose::Model).stream(number++);
      auto* values = parameter.data_ptr<float>();
      for (std::int64_t i = 0; i < parameter.numel(); ++i) {
        values[i] = static_cast<float>(has_bias ? (2 * random.uniform(i) - 1) / std::sqrt(fan_in)
                                                : random.normal(i) * std::sqrt(2 / fan_in));
      }
    }
  }
}

class Made final : public ImageModel {
 public:
  explicit Made(std::shared_ptr<Network> network) : network_(std::move(network)) {}
  nn::Module& module() override { return *network_; }
  at::Tensor forward(const at::Tensor& images) override { return network_->forward(images); }

 private:
  std::shared_ptr<Network> network_;  // torch's modules want it
};

// Parameters and nothing else: for emulated computation.
struct Flat final : Network {
  explicit Flat(std::int64_t parameters) {
    constexpr std::int64_t kTensor = 65'536;
    for (std::int64_t from = 0; from < parameters; from += kTensor) {
      register_parameter("part" + std::to_string(from / kTensor),
                         at::zeros({std::min(kTensor, parameters - from)}));
    }
  }
  at::Tensor forward(const at::Tensor&) override {
    throw Error(ErrorCode::Input, "a flat model computes nothing: emulate its computation");
  }
};

constexpr std::string_view kFlat = "flat:";

// Of "flat:N"; nothing of other names.
std::optional<std::int64_t> flat_parameters(std::string_view name) {
  if (!name.starts_with(kFlat)) {
    return std::nullopt;
  }
  constexpr std::int64_t kMost = 4'000'000'000;
  const auto count = parse_number<std::int64_t>(name.substr(kFlat.size()));
  require(count && *count >= 1 && *count <= kMost,
          "model '{}': write flat:PARAMETERS, from 1 to {}", name, kMost);
  return count;
}

constexpr std::array<std::string_view, 4> kNames = {"mlp", "cnn", "small-cnn", "resnet20"};

std::shared_ptr<Network> make(std::string_view name, const ImageShape& shape) {
  if (const auto parameters = flat_parameters(name)) {
    return std::make_shared<Flat>(*parameters);
  }
  if (name == "mlp") {
    return std::make_shared<Mlp>(shape);
  }
  if (name == "cnn") {
    return std::make_shared<Cnn>(shape, kCnn);
  }
  if (name == "small-cnn") {
    return std::make_shared<Cnn>(shape, kSmallCnn);
  }
  return std::make_shared<ResNet20>(shape);
}

}  // namespace

std::span<const std::string_view> image_model_names() { return kNames; }

bool is_flat_model(std::string_view name) { return flat_parameters(name).has_value(); }

std::unique_ptr<ImageModel> make_image_model(std::string_view name, const ImageShape& shape,
                                             std::uint64_t seed) {
  require(is_flat_model(name) || std::find(kNames.begin(), kNames.end(), name) != kNames.end(),
          "unknown model '{}'; did you mean '{}'?", name, nearest(name, kNames));
  require(shape.height >= 4 && shape.width >= 4 && shape.channels >= 1 && shape.classes >= 2,
          "{} takes images of 4 x 4 pixels or more, and 2 classes or more", name);
  const auto network = make(name, shape);
  if (!is_flat_model(name)) {
    draw_parameters(*network, seed);
  }
  return std::make_unique<Made>(network);
}

}  // namespace starling::workload
