// A worker that sleeps through its steps, some of them longer (sim/stragglers.h):
//
//   straggler_worker ALGORITHM,… BYTES STEPS STEP_MS STRAGGLERS DELAY_MS SYNC_PERIOD
//
// Worker 0 prints a line of JSON per algorithm, with the time until all have taken their last step:
//
//   {"algorithm":"…","seconds":S}
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <thread>

#include "bench/rivals/plan.h"
#include "starling/base/error.h"
#include "starling/comm/barrier.h"
#include "starling/comm/connect.h"
#include "starling/sim/stragglers.h"

namespace starling {
namespace {

class StragglerWorker {
 public:
  StragglerWorker() : workers_(comm::connect()), everyone_(workers_->everyone()) {}

  void measure(sim::StragglerOptions options) {
    options.run = run_++;
    barrier();
    const WallTime begin = std::chrono::steady_clock::now();
    workers_->run([&](comm::Engine& engine) {
      return sim::take_straggling_steps(
          engine, options,
          [this](double seconds) {
            return workers_->apart([seconds] { std::this_thread::sleep_for(Seconds(seconds)); });
          },
          [this](std::function<void()> work) { return workers_->apart(std::move(work)); });
    });
    barrier();
    const double took = seconds(std::chrono::steady_clock::now() - begin);
    if (workers_->rank() == Rank{0}) {
      fmt::print("{{\"algorithm\":\"{}\",\"seconds\":{}}}\n", options.algorithm, took);
      std::fflush(stdout);
    }
  }

 private:
  void barrier() {
    workers_->run([&](comm::Engine& engine) {
      return comm::barrier(engine, {.id = ++id_, .members = everyone_});
    });
  }

  std::unique_ptr<comm::Workers> workers_;
  std::vector<Rank> everyone_;
  std::uint64_t run_ = 0;
  std::uint64_t id_ = 0;
};

int run(int argc, const char* const* argv) {
  require(argc == 8,
          "straggler_worker ALGORITHM,… BYTES STEPS STEP_MS STRAGGLERS DELAY_MS SYNC_PERIOD");
  const auto number = [&](int at) { return rivals::parse_number("argument", argv[at], 0); };
  sim::StragglerOptions options;
  options.bytes = Bytes{static_cast<std::uint64_t>(number(2))};
  options.steps = static_cast<std::uint64_t>(number(3));
  options.step = 1e-3 * static_cast<double>(number(4));
  options.stragglers = static_cast<std::uint32_t>(number(5));
  options.delay = 1e-3 * static_cast<double>(number(6));
  options.sync_period = static_cast<std::uint32_t>(number(7));
  StragglerWorker worker;
  std::istringstream names(argv[1]);
  for (std::string name; std::getline(names, name, ',');) {
    options.algorithm = name;
    worker.measure(options);
  }
  return 0;
}

}  // namespace
}  // namespace starling

int main(int argc, char** argv) {
  return starling::rivals::exit_code("straggler_worker", [&] { return starling::run(argc, argv); });
}
