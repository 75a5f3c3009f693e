// A worker whose calls are timed when workers arrive one after the other (sim/skew.h):
//
//   skew_worker --bytes 64,1000 --repetitions 16,16 --warmup 3 --spacing MICROSECONDS
//
// Worker 0 prints a line of JSON per size, with the calls of all workers:
//
//   {"bytes":N,"blocking":[…],"wait_avoiding":[…]}
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "bench/rivals/plan.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/connect.h"
#include "starling/sim/skew.h"

namespace starling {
namespace {

class SkewWorker {
 public:
  explicit SkewWorker(double spacing)
      : spacing_(spacing), workers_(comm::connect()), everyone_(workers_->everyone()) {}

  void measure(const rivals::Size& size, int warmup) {
    sim::SkewOptions options;
    options.bytes = Bytes{size.bytes};
    options.calls = size.repetitions;
    options.warmup = warmup;
    options.spacing = spacing_;
    options.run = run_++;
    const sim::CallTimes own = workers_->run([&](comm::Engine& engine) {
      return sim::time_calls(engine, options, [this](std::function<void()> work) {
        return workers_->apart(std::move(work));
      });
    });
    const std::vector<double> blocking = gather(own.blocking);
    const std::vector<double> wait_avoiding = gather(own.wait_avoiding);
    if (workers_->rank() == Rank{0}) {
      fmt::print("{{\"bytes\":{},\"blocking\":[{}],\"wait_avoiding\":[{}]}}\n", size.bytes,
                 fmt::join(blocking, ","), fmt::join(wait_avoiding, ","));
      std::fflush(stdout);
    }
  }

 private:
  // Everyone's, in the order of ranks.
  std::vector<double> gather(const std::vector<double>& own) {
    std::vector<double> rows(workers_->size() * own.size());
    std::vector<double> all(rows.size());
    std::copy(own.begin(), own.end(),
              rows.begin() + static_cast<std::ptrdiff_t>(workers_->rank().index() * own.size()));
    const std::uint64_t id = kGatherIds + gathered_++;
    workers_->run([&](comm::Engine& engine) {
      return comm::all_reduce(engine, {.id = id, .members = everyone_},
                              comm::input(std::span(rows)), comm::output(std::span(all)));
    });
    return all;
  }

  // Far above those of the calls.
  static constexpr std::uint64_t kGatherIds = std::uint64_t{1} << 40;

  double spacing_;
  std::unique_ptr<comm::Workers> workers_;
  std::vector<Rank> everyone_;
  std::uint64_t run_ = 0;
  std::uint64_t gathered_ = 0;
};

int run(int argc, const char* const* argv) {
  const rivals::Plan plan = rivals::parse(argc, argv, {"--spacing"});
  const auto spacing = plan.options.find("--spacing");
  SkewWorker worker(spacing == plan.options.end() ? 1e-3
                                                  : 1e-6 * static_cast<double>(rivals::parse_number(
                                                               "--spacing", spacing->second, 0)));
  for (const rivals::Size& size : plan.sizes) {
    worker.measure(size, plan.warmup);
  }
  return 0;
}

}  // namespace
}  // namespace starling

int main(int argc, char** argv) {
  return starling::rivals::exit_code("skew_worker", [&] { return starling::run(argc, argv); });
}
