#include "bench/rivals/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "starling/base/time.h"

namespace starling::rivals {
namespace {

using Clock = std::chrono::steady_clock;

// Trials of each method: small buffers are quick, and their times scatter more.
std::size_t trials_of(std::size_t bytes) { return bytes > 4'000'000 ? 3 : 25; }

double since(WallTime start) { return seconds(Clock::now() - start); }

// User and system time of this process so far.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double timed(Rival& rival, std::size_t method) {
  rival.barrier();
  const WallTime start = Clock::now();
  rival.all_reduce(method);
  return since(start);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// The fastest method; methods take turns. The same on every rank.
std::size_t choose(Rival& rival, std::size_t bytes) {
  std::vector<std::vector<double>> trials(rival.methods().size());
  if (trials.size() == 1) {
    return 0;
  }
  for (std::size_t trial = 0; trial < trials_of(bytes); ++trial) {
    for (std::size_t method = 0; method < trials.size(); ++method) {
      trials[method].push_back(timed(rival, method));
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& times : trials) {
    rival.combine(times, Combine::Largest);
    medians.push_back(median(times));
  }
  return std::min_element(medians.begin(), medians.end()) - medians.begin();
}

bool correct_everywhere(Rival& rival, std::size_t bytes) {
  const bool correct = rival.correct();
  if (!correct) {
    fmt::print(stderr, "rank {}: a wrong sum of {} bytes\n", rival.rank(), bytes);
  }
  std::vector<double> wrong = {correct ? 0.0 : 1.0};
  rival.combine(wrong, Combine::Total);
  return wrong[0] == 0;
}

struct Block {
  std::vector<double> seconds;
  std::vector<double> cpu = {0};
  double elapsed = 0;
};

// Times `repetitions` more.
void repeat(Block& block, Rival& rival, std::size_t method, int repetitions) {
  const double cpu = cpu_seconds();
  const WallTime start = Clock::now();
  for (int i = 0; i < repetitions; ++i) {
    block.seconds.push_back(timed(rival, method));
  }
  block.elapsed += since(start);
  block.cpu[0] += cpu_seconds() - cpu;
}

Block measure(Rival& rival, std::size_t method, int repetitions) {
  Block block;
  rival.barrier();
  repeat(block, rival, method, repetitions - 1);
  rival.spoil();
  rival.barrier();
  repeat(block, rival, method, 1);
  rival.combine(block.seconds, Combine::Largest);
  rival.combine(block.cpu, Combine::Total);
  return block;
}

void print(const Rival& rival, std::size_t bytes, const Block& block, std::size_t method) {
  const std::vector<std::string> methods = rival.methods();
  const std::string choice =
      methods.size() > 1 ? fmt::format(R"(,"method":"{}")", methods[method]) : "";
  fmt::print("{{\"bytes\":{},\"seconds\":[{}],\"cpu_seconds\":{},\"elapsed_seconds\":{}{}}}\n",
             bytes, fmt::join(block.seconds, ","), block.cpu[0], block.elapsed, choice);
  std::fflush(stdout);
}

}  // namespace

int measure(const Plan& plan, Rival& rival) {
  for (const Size& size : plan.sizes) {
    rival.prepare(size.bytes / sizeof(float));
    for (int i = 0; i < plan.warmup; ++i) {
      timed(rival, 0);
    }
    const std::size_t method = choose(rival, size.bytes);
    const Block block = measure(rival, method, size.repetitions);
    if (!correct_everywhere(rival, size.bytes)) {
      return 1;
    }
    if (rival.rank() == 0) {
      print(rival, size.bytes, block, method);
    }
  }
  return 0;
}

}  // namespace starling::rivals
