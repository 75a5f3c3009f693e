// What images cost: loading a set, making a batch, a step of each model on one thread; with the
// argument `epoch` also what the MLP learns in one epoch of plain SGD, as a check of data and model
// together.
//
//     build/release/bench/images_bench [fashion-mnist|cifar10] [epoch]
#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/time.h"
#include "starling/workload/batches.h"
#include "starling/workload/image_data.h"
#include "starling/workload/image_models.h"
#include "starling/workload/image_tensors.h"

namespace starling::workload {
namespace {

constexpr std::uint32_t kBatch = 64;

double time_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return seconds(std::chrono::steady_clock::now() - start);
}

double median_of(int times, const std::function<void()>& work) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    all.push_back(time_of(work));
  }
  std::nth_element(all.begin(), all.begin() + times / 2, all.end());
  return all[times / 2];
}

std::unique_ptr<ImageModel> model_for(const Images& images, std::string_view name) {
  return make_image_model(name, {images.channels, images.height, images.width, images.classes}, 1);
}

void take_step(ImageModel& model, torch::optim::SGD& sgd, const ImageBatch& batch) {
  sgd.zero_grad();
  torch::nn::functional::cross_entropy(model.forward(batch.data), batch.target).backward();
  sgd.step();
}

double accuracy(ImageModel& model, const Images& images) {
  const at::NoGradGuard no_grad;
  model.module().eval();
  std::int64_t right = 0;
  constexpr std::size_t kPiece = 500;
  for (std::size_t first = 0; first < images.count; first += kPiece) {
    const ImageBatch batch = image_range(images, first, std::min(kPiece, images.count - first));
    right += model.forward(batch.data).argmax(1).eq(batch.target).sum().item<std::int64_t>();
  }
  model.module().train();
  return static_cast<double>(right) / static_cast<double>(images.count);
}

void measure_costs(const ImageSet& set) {
  const Batches batches({.samples = set.train.count, .batch = kBatch});
  std::uint64_t step = 0;
  const double indices = median_of(2'000, [&] { batches.batch(step++); });
  fmt::print("indices of a batch of {}    {:8.1f} us\n", kBatch, indices * 1e6);
  step = 0;
  const double both = median_of(2'000, [&] { image_batch(set.train, batches.batch(step++)); });
  fmt::print("the same and its tensors   {:8.1f} us\n", both * 1e6);
  for (const std::string_view name : image_model_names()) {
    const auto model = model_for(set.train, name);
    torch::optim::SGD sgd(model->module().parameters(), torch::optim::SGDOptions(0.01));
    const ImageBatch batch = image_batch(set.train, batches.batch(0));
    const double time = median_of(15, [&] { take_step(*model, sgd, batch); });
    fmt::print("{:<9} step of {}         {:8.2f} ms  {:8.0f} samples/s\n", name, kBatch, time * 1e3,
               kBatch / time);
  }
}

void learn(const ImageSet& set) {
  const auto model = model_for(set.train, "mlp");
  torch::optim::SGD sgd(model->module().parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  const Batches batches({.samples = set.train.count, .batch = kBatch, .seed = 1});
  const double time = time_of([&] {
    for (std::uint64_t step = 0; step < batches.steps_per_epoch(); ++step) {
      take_step(*model, sgd, image_batch(set.train, batches.batch(step)));
    }
  });
  fmt::print("mlp after one epoch: test accuracy {:.4f}, {:.1f} s\n", accuracy(*model, set.test),
             time);
}

void run(const std::string& name, bool epoch) {
  torch::set_num_threads(1);
  ImageSet set;
  const double time = time_of([&] { set = load_images(name); });
  fmt::print("{}: {} + {} images loaded in {:.2f} s; mean {:.6f} deviation {:.6f}\n", name,
             set.train.count, set.test.count, time, set.train.mean[0], set.train.deviation[0]);
  measure_costs(set);
  if (epoch) {
    learn(set);
  }
}

}  // namespace
}  // namespace starling::workload

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool epoch = !words.empty() && words.back() == "epoch";
  const bool named = words.size() > (epoch ? 1 : 0);
  try {
    starling::workload::run(named ? words[0] : "fashion-mnist", epoch);
  } catch (const starling::Error& e) {
    fmt::print(stderr, "images_bench: {}\n", e.what());
    return 2;
  }
  return 0;
}
