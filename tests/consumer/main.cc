// Five workers on a virtual network add up their ranks.
#include <cstdio>
#include <span>
#include <vector>

#include "starling/comm/all_reduce.h"
#include "starling/sim/cluster.h"

namespace {

using starling::Rank;

starling::Task<void> add_up(starling::comm::Engine& engine, std::vector<float>& result) {
  const std::vector<Rank> everyone = {Rank{0}, Rank{1}, Rank{2}, Rank{3}, Rank{4}};
  const std::vector<float> mine(1000, static_cast<float>(engine.rank().value));
  const auto in = starling::comm::input(std::span(mine));
  const auto out = starling::comm::output(std::span(result));
  co_await starling::comm::all_reduce(engine, {.id = 1, .members = everyone}, in, out);
}

}  // namespace

int main() {
  starling::sim::ClusterOptions options;
  options.network.ports.workers = 5;
  starling::sim::Cluster cluster(options);
  std::vector<std::vector<float>> results(5, std::vector<float>(1000));
  starling::sim::rethrow_first(cluster.run([&](starling::comm::Engine& engine) {
    return add_up(engine, results[engine.rank().index()]);
  }));
  for (const auto& result : results) {
    for (float x : result) {
      if (x != 10) {
        std::printf("wrong: %f\n", static_cast<double>(x));
        return 1;
      }
    }
  }
  std::printf("five workers agree\n");
}
