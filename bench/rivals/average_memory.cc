// The floor: no all-reduce of N workers on one host that hands every worker its own result can be
// faster than reading N inputs and writing N results. One process, a thread per worker or per core,
// whichever is less, the buffers cut into one part per thread.
//
//   average_memory … --workers N
#include <algorithm>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "bench/rivals/measure.h"
#include "bench/rivals/pattern.h"
#include "bench/rivals/streams.h"
#include "bench/rivals/team.h"
#include "starling/base/error.h"

namespace starling::rivals {
namespace {

struct Method {
  const char* name;
  Sum* sum;
};

// Which is fastest depends on the number of workers and on what is in the caches.
constexpr Method kMethods[] = {{"kernels, 64 KiB", sum_by_kernels},
                               {"by hand, 128 bytes", sum_by_hand<32>},
                               {"by hand, 1 KiB", sum_by_hand<256>},
                               {"by hand, 4 KiB", sum_by_hand<1024>}};

struct alignas(64) Line {
  float floats[kLineFloats];
};

// Between buffers, so that equal places in them do not compete for the same part of a cache.
constexpr std::size_t kGapLines = 65;

class Memory : public Rival {
 public:
  explicit Memory(int workers)
      : workers_(workers),
        team_(std::min(workers, static_cast<int>(std::thread::hardware_concurrency()))) {}

  int rank() const override { return 0; }
  std::vector<std::string> methods() const override {
    std::vector<std::string> names;
    for (const Method& method : kMethods) {
      names.emplace_back(method.name);
    }
    return names;
  }

  void prepare(std::size_t floats) override;
  void barrier() override {
    team_.run([](int) {});
  }
  void all_reduce(std::size_t method) override {
    team_.run([&](int member) { sum_part(*kMethods[method].sum, member); });
  }
  void spoil() override {
    for (float* result : results_) {
      spoil_result({result, floats_});
    }
  }
  bool correct() const override {
    return std::all_of(results_.begin(), results_.end(),
                       [&](const float* result) { return is_sum({result, floats_}, workers_); });
  }
  void combine(std::vector<double>&, Combine) override {}

 private:
  std::size_t lines() const { return (floats_ + kLineFloats - 1) / kLineFloats; }
  void sum_part(Sum& sum, std::size_t member) const {
    const auto border = [&](std::size_t m) { return lines() * m / team_.members() * kLineFloats; };
    sum(results_, sources_, border(member), border(member + 1));
  }

  int workers_;
  Team team_;
  std::size_t floats_ = 0;
  std::vector<Line> memory_;
  std::vector<const float*> sources_;
  std::vector<float*> results_;
};

void Memory::prepare(std::size_t floats) {
  floats_ = floats;
  sources_.clear();
  results_.clear();
  const std::size_t stride = lines() + kGapLines;
  memory_ = std::vector<Line>(stride * 2 * workers_);
  Line* next = memory_.data();
  for (int worker = 0; worker < workers_; ++worker, next += 2 * stride) {
    fill_input({next->floats, floats}, worker);
    sources_.push_back(next->floats);
    results_.push_back(next[stride].floats);
  }
}

int run(int argc, const char* const* argv) {
  const Plan plan = parse(argc, argv, {"--workers"});
  const auto workers = plan.options.find("--workers");
  require(workers != plan.options.end(), "--workers is needed");
  Memory memory(static_cast<int>(parse_number("--workers", workers->second, 1)));
  return measure(plan, memory);
}

}  // namespace
}  // namespace starling::rivals

int main(int argc, char** argv) {
  return starling::rivals::exit_code("average_memory",
                                     [&] { return starling::rivals::run(argc, argv); });
}
