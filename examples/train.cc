// A model of your own, trained by several workers that never wait for the slowest:
//     starling run -n 4 -- ./train
#include <fmt/format.h>
#include <torch/torch.h>

#include "starling/comm/connect.h"
#include "starling/train/data_parallel.h"

namespace train = starling::train;

int main() {
  try {
    const auto workers = starling::comm::connect();  // one worker if there is no launcher
    torch::nn::Sequential model(torch::nn::Linear(2, 32), torch::nn::Tanh(),
                                torch::nn::Linear(32, 1));
    const int steps = 400;
    train::DataParallel replica(*model, *workers, {.algorithm = "starling", .steps = steps},
                                train::AdamW{.lr = 1e-2});

    // Data of this worker: is a point inside the circle?
    torch::manual_seed(1 + static_cast<int>(workers->rank().value));
    const auto batch = [] {
      const torch::Tensor points = torch::rand({64, 2}) * 2 - 1;
      const torch::Tensor inside = (points.pow(2).sum(1, true) < 0.6).to(torch::kFloat);
      return std::pair(points, inside);
    };
    for (int step = 0; step < steps; ++step) {
      const auto [points, inside] = batch();
      replica.step([&, p = points, i = inside] {
        return torch::binary_cross_entropy_with_logits(model->forward(p), i);
      });
    }
    replica.finish();
    replica.with_consensus_model([&] {  // the average of all workers; training is untouched
      const auto [points, inside] = batch();
      const torch::Tensor right = ((model->forward(points) > 0) == (inside > 0.5)).sum();
      fmt::print("worker {} of {}: {} of 64 are right\n", workers->rank(), workers->size(),
                 right.item<int>());
    });
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
