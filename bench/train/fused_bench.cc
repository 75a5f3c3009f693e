// What a step of training costs beside the gradient: mix with the result of a round, AdamW, and a
// snapshot, for a bucket of 100 MB of floats on one thread.
//
//   fused   kernels::update_adam, one pass
//   plain   the loop that one would write over the same streams (plain_update.cc)
//   torch   torch::optim::AdamW, then mixing and copying as torch operations
//
// The machine is noisy: the three take turns, and medians count. Streams are those that the pass
// names: the model, the result, the gradient and two moments are read; the model, the snapshot and
// two moments are written.
//
//   fused_bench [ROUNDS]
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <vector>

#include "bench/train/plain_update.h"
#include "starling/base/time.h"
#include "starling/train/optimizer.h"

namespace starling::train {
namespace {

constexpr std::int64_t kElements = 25'000'000;
constexpr float kHalf = 0.5f;
constexpr double kStreams = 9;

struct Contestant {
  std::string_view name;
  std::function<void()> step;
  std::vector<double> times = {};  // seconds

  double median() const {
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  double fastest() const { return *std::min_element(times.begin(), times.end()); }
};

// One model, one gradient and one result for all; moments of their own.
class Bucket {
 public:
  Bucket()
      : model_(torch::randn(kElements)),
        snapshot_(torch::zeros(kElements)),
        result_(torch::randn(kElements)),
        first_(torch::zeros(kElements)),
        second_(torch::zeros(kElements)),
        fused_(config_, comm::Type::Float32, kElements),
        torch_({model_},
               torch::optim::AdamWOptions(config_.lr).weight_decay(config_.weight_decay)) {
    model_.mutable_grad() = torch::randn(kElements);
  }

  void fused() {
    auto* model = model_.data_ptr<float>();
    fused_.update(0, ++t_, 1, {},
                  kernels::Streams<float>{.size = kElements,
                                          .from = model,
                                          .into = model,
                                          .copy = snapshot_.data_ptr<float>(),
                                          .result = result_.data_ptr<float>(),
                                          .of_from = kHalf,
                                          .of_result = kHalf,
                                          .gradient = model_.grad().data_ptr<float>()});
  }

  void plain() {
    const kernels::AdamStep<float> step{.lr = 1e-3f,
                                        .beta1 = 0.9f,
                                        .rest1 = 0.1f,
                                        .beta2 = 0.999f,
                                        .rest2 = 0.001f,
                                        .epsilon = 1e-8f,
                                        .shrink = 0.99999f,
                                        .correction1 = 0.5f,
                                        .correction2 = 0.5f};
    plain_adamw(model_.data_ptr<float>(), snapshot_.data_ptr<float>(), result_.data_ptr<float>(),
                kHalf, kHalf, model_.grad().data_ptr<float>(), first_.data_ptr<float>(),
                second_.data_ptr<float>(), kElements, step);
  }

  void torch() {
    const torch::NoGradGuard no_gradient;
    torch_.step();
    model_.mul_(kHalf).add_(result_, kHalf);
    snapshot_.copy_(model_);
  }

 private:
  AdamW config_;
  at::Tensor model_, snapshot_, result_, first_, second_;
  FusedOptimizer fused_;
  torch::optim::AdamW torch_;
  std::int64_t t_ = 0;
};

void race(std::vector<Contestant>& contestants, int rounds) {
  for (int round = -1; round < rounds; ++round) {  // one to warm up
    for (Contestant& c : contestants) {
      const WallTime start = std::chrono::steady_clock::now();
      c.step();
      const double time = seconds(std::chrono::steady_clock::now() - start);
      if (round >= 0) {
        c.times.push_back(time);
      }
    }
  }
}

}  // namespace
}  // namespace starling::train

int main(int argc, char** argv) {
  using namespace starling::train;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  if (rounds < 1) {
    fmt::print(stderr, "usage: fused_bench [ROUNDS]\n");
    return 2;
  }
  at::set_num_threads(1);
  Bucket bucket;
  std::vector<Contestant> contestants = {{"fused", [&] { bucket.fused(); }},
                                         {"plain", [&] { bucket.plain(); }},
                                         {"torch", [&] { bucket.torch(); }}};
  race(contestants, rounds);
  fmt::print("{:8} {:>10} {:>10} {:>8}\n", "", "median ms", "least ms", "GB/s");
  for (const Contestant& c : contestants) {
    fmt::print("{:8} {:10.1f} {:10.1f} {:8.1f}\n", c.name, 1e3 * c.median(), 1e3 * c.fastest(),
               kStreams * 4 * kElements / 1e9 / c.median());
  }
  fmt::print("fused over plain {:.2f} (wanted: at most 1.25)\n",
             contestants[0].median() / contestants[1].median());
  fmt::print("torch over fused {:.1f} (wanted: at least 6)\n",
             contestants[2].median() / contestants[0].median());
}
