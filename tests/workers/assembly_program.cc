// A worker that meets the others in a long row of calls (train/assembly.h) and prints what they
// came to: `assembly_program CALLS WHO CALL MICROSECONDS`. Worker WHO kills itself so long after it
// has begun that call.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "starling/base/error.h"
#include "starling/comm/connect.h"
#include "starling/train/assembly.h"

namespace starling::test {
namespace {

void run(int calls, std::uint32_t who, int at, int microseconds) {
  const auto workers = comm::connect();
  const std::size_t size = workers->size();
  const std::uint32_t self = workers->rank().value;
  train::Assembly assembly(*workers, workers->next_series());
  std::uint64_t digest = 14695981039346656037ULL;
  const auto note = [&](std::string_view what) {
    for (const char c : what) {
      digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    }
  };
  for (int call = 0; call < calls; ++call) {
    if (self == who && call == at) {
      std::thread([microseconds] {
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
        kill(getpid(), SIGKILL);
      }).detach();
    }
    if (call % 3 == 0) {
      // Bit r tells whether worker r took part.
      const double sum = assembly.sum(static_cast<double>(1U << self));
      check(sum == static_cast<double>((1U << size) - 1) ||
                sum == static_cast<double>((1U << size) - 1 - (1U << who)),
            "a sum of {} in call {}", sum, call);
      note(fmt::format("{}", sum));
    } else if (call % 3 == 1) {
      const std::string said =
          assembly.broadcast(std::string_view(fmt::format("worker {} in call {}", self, call)));
      const std::uint32_t lowest = who == 0 ? 1 : 0;
      check(said == fmt::format("worker 0 in call {}", call) ||
                said == fmt::format("worker {} in call {}", lowest, call),
            "'{}' in call {}", said, call);
      note(said);
    } else {
      const std::vector<std::string> said = assembly.gather(fmt::format("{}:{}", self, call));
      for (std::uint32_t r = 0; r < size; ++r) {
        check(said[r] == fmt::format("{}:{}", r, call) || (r == who && said[r].empty()),
              "'{}' of worker {} in call {}", said[r], r, call);
        note(said[r]);
      }
    }
  }
  fmt::print("digest {:016x}\n", digest);
  std::fflush(stdout);
}

}  // namespace
}  // namespace starling::test

int main(int, char** argv) {
  try {
    starling::test::run(std::atoi(argv[1]), static_cast<std::uint32_t>(std::atoi(argv[2])),
                        std::atoi(argv[3]), std::atoi(argv[4]));
    return 0;
  } catch (const std::exception& e) {
    fmt::print("failed: {}\n", e.what());
    return 1;
  }
}
