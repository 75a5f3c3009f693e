// A worker that averages for ever, until something happens, and says what it was:
//     loss_program BYTES [--private] [--stall SECONDS] [--rounds N]
// Lines: "ready PID"; "round N" now and then; then "ended: TEXT" or "done"; "at TIME" (seconds of
// the steady clock) of that; "rest SHARE": how much of a core it needed in the second that
// followed.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/connect.h"

namespace starling::test {
namespace {

struct Request {
  std::size_t bytes = 0;
  bool is_private = false;
  double stall = 600;
  std::uint64_t rounds = UINT64_MAX;
};

Request parse(int argc, char** argv) {
  Request request{.bytes = std::stoull(argv[1])};
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--private") {
      request.is_private = true;
    } else if (word == "--stall") {
      request.stall = std::stod(argv[++i]);
    } else if (word == "--rounds") {
      request.rounds = std::stoull(argv[++i]);
    }
  }
  return request;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

template <typename... Args>
void say(fmt::format_string<Args...> text, Args&&... args) {
  fmt::print("{}\n", fmt::format(text, std::forward<Args>(args)...));
  std::fflush(stdout);
}

// Sums whole numbers that follow from round and rank; the result is exact.
void average(comm::Workers& workers, const Request& request) {
  const std::size_t floats = request.bytes / sizeof(float);
  std::vector<float> own_in(request.is_private ? floats : 0);
  std::vector<float> own_out(request.is_private ? floats : 0);
  const auto pool_in = workers.memory(request.is_private ? 64 : request.bytes);
  const auto pool_out = workers.memory(request.is_private ? 64 : request.bytes);
  const std::span<float> in = request.is_private ? std::span(own_in) : pool_in.as<float>();
  const std::span<float> out = request.is_private ? std::span(own_out) : pool_out.as<float>();
  const std::vector<Rank> everyone = workers.everyone();
  const float n = static_cast<float>(workers.size());
  for (std::uint64_t round = 1; round <= request.rounds; ++round) {
    const float mine = static_cast<float>(round % 1000 + workers.rank().value);
    std::fill(in.begin(), in.end(), mine);
    workers.run([&](comm::Engine& engine) {
      return comm::all_reduce(engine, {.id = round, .members = everyone}, comm::input(in),
                              comm::output(out));
    });
    const float sum = n * static_cast<float>(round % 1000) + n * (n - 1) / 2;
    for (std::size_t i = 0; i < out.size(); ++i) {
      check(out[i] == sum, "round {}: element {} is {}, not {}", round, i, out[i], sum);
    }
    if (round == 1 || round % 10 == 0) {
      say("round {}", round);
    }
  }
}

int main_of(int argc, char** argv) {
  const Request request = parse(argc, argv);
  comm::ConnectOptions options;
  options.engine.max_stall = std::chrono::duration_cast<Duration>(Seconds(request.stall));
  const auto workers = comm::connect(options);
  say("ready {}", getpid());
  try {
    average(*workers, request);
    say("done");
    return 0;
  } catch (const Error& e) {
    say("at {:.6f}", seconds(std::chrono::steady_clock::now().time_since_epoch()));
    say("ended: {}: {}", name_of(e.code()), e.what());
  }
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  say("rest {:.4f}", cpu_seconds() - before);
  return 3;
}

}  // namespace
}  // namespace starling::test

int main(int argc, char** argv) {
  try {
    return starling::test::main_of(argc, argv);
  } catch (const std::exception& e) {
    fmt::print("ended: {}\n", e.what());
    return 1;
  }
}
