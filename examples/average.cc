// Every worker brings a model and gets the average of all. Start it by any launcher, for example
//     starling run -n 4 -- ./average
#include <fmt/format.h>

#include <exception>
#include <vector>

#include "starling/comm/all_reduce.h"
#include "starling/comm/connect.h"

namespace comm = starling::comm;

int main() {
  try {
    const auto workers = comm::connect();
    const std::vector<starling::Rank> everyone = workers->everyone();

    const std::size_t parameters = 1'000'000;
    const auto model_memory = workers->memory(parameters * sizeof(float));
    const auto sum_memory = workers->memory(parameters * sizeof(float));
    const std::span<float> model = model_memory.as<float>();
    const std::span<float> sum = sum_memory.as<float>();
    for (float& weight : model) {
      weight = static_cast<float>(workers->rank().value);
    }

    workers->run([&](comm::Engine& engine) {
      return comm::all_reduce(engine, {.id = 1, .members = everyone}, comm::input(model),
                              comm::output(sum));
    });

    fmt::print("worker {} of {}: the average of the first weight is {}\n", workers->rank(),
               workers->size(), sum[0] / static_cast<float>(workers->size()));
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
