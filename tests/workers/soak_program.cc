// A worker that runs random collectives with the others for a while: any kind, any length up to a
// few megabytes, subsets of workers, several at once, buffers in the pool or not. Everything
// follows from the seed, so every worker knows what everybody brings and checks every result, bit
// by bit.
//     soak_program SECONDS [SEED]
#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/random.h"
#include "starling/base/running.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/comm/broadcast.h"
#include "starling/comm/connect.h"
#include "starling/comm/neighbour_exchange.h"
#include "tests/comm/trial.h"
#include "tests/workers/guarded.h"

namespace starling::test {
namespace {

using comm::AllReduce;
using comm::Engine;

// One collective of a batch, the same on all workers.
class Bout {
 public:
  Bout(const Random& random, std::uint64_t id, std::size_t workers) : random_(random), id_(id) {
    constexpr std::size_t kLengths[] = {1, 17, 1014, 5000, 70'000, 300'001, 1'500'000};
    elements_ = 1 + random.below(kLengths[random.below(std::size(kLengths), 0)], 1);
    for (std::uint32_t r = 0; r < workers; ++r) {
      if (random.stream(2).below(3, r) != 0) {
        members_.push_back(Rank{r});
      }
    }
    if (members_.empty()) {
      members_.push_back(Rank{0});
    }
  }

  bool includes(Rank rank) const {
    return std::find(members_.begin(), members_.end(), rank) != members_.end();
  }

  Task<void> run(Engine& engine) const {
    const bool lies_in_pool = random_.stream(3).below(2, engine.rank().value) == 0;
    const std::size_t bytes = elements_ * sizeof(float);
    std::vector<float> own_in(elements_);
    std::vector<float> own_out(elements_, -1.0F);
    const comm::Blob in_pool = engine.endpoint().share(bytes);
    const comm::Blob out_pool = engine.endpoint().share(bytes);
    for (std::size_t i = 0; i < elements_; ++i) {
      own_in[i] = value(engine.rank(), i);
    }
    std::memcpy(in_pool.data, own_in.data(), bytes);
    const comm::ConstBuffer in{
        comm::Type::Float32,
        lies_in_pool ? comm::ConstBlob(in_pool) : comm::input(std::span<const float>(own_in)).blob};
    const comm::Buffer out{comm::Type::Float32,
                           lies_in_pool ? out_pool : comm::output(std::span(own_out)).blob};
    co_await play(engine, in, out);
    if (lies_in_pool) {
      std::memcpy(own_out.data(), out_pool.data, bytes);
    }
    engine.endpoint().unshare(in_pool);
    engine.endpoint().unshare(out_pool);
    judge(own_out);
  }

 private:
  std::uint64_t kind() const { return random_.below(8, 4); }
  comm::Precision precision() const {
    return kind() != 0 && random_.below(3, 6) == 0 ? comm::Precision::Bf16 : comm::Precision::Full;
  }
  Rank root() const { return members_[random_.below(members_.size(), 5)]; }
  float value(Rank rank, std::size_t i) const {
    // Cheap, and different from place to place, worker to worker and bout to bout.
    const std::uint64_t mixed =
        (i * 2654435761u + std::uint64_t{rank.value} * 40503u + id_ * 9973u) * 0x9E3779B97F4A7C15u;
    return static_cast<float>(mixed >> 40) * 0x1p-20F - 4.0F;
  }

  Task<void> play(Engine& engine, comm::ConstBuffer in, comm::Buffer out) const {
    const comm::Call call{.id = id_, .members = members_};
    if (kind() == 0) {
      co_await comm::broadcast(engine, call, root(), in, out);
    } else {
      constexpr AllReduce kAlgorithms[] = {AllReduce::Direct, AllReduce::Halving, AllReduce::Auto};
      co_await comm::all_reduce(engine, call, in, out,
                                kAlgorithms[std::min<std::uint64_t>(kind() - 1, 2)], precision());
    }
  }

  // What counts of a member's values.
  std::vector<float> as_travelled(Rank rank) const {
    std::vector<float> values(elements_);
    for (std::size_t i = 0; i < elements_; ++i) {
      values[i] = value(rank, i);
    }
    if (precision() == comm::Precision::Bf16) {
      const std::vector<float> given = values;
      const comm::Buffer into = comm::output(std::span(values));
      comm::KernelArithmetic().through_bf16(into.type, into.blob,
                                            comm::input(std::span(given)).blob);
    }
    return values;
  }

  void judge(const std::vector<float>& out) const {
    std::vector<std::vector<float>> brought;
    for (const Rank member : members_) {
      brought.push_back(as_travelled(member));
    }
    std::vector<float> terms(members_.size());
    for (std::size_t i = 0; i < elements_; ++i) {
      for (std::size_t m = 0; m < members_.size(); ++m) {
        terms[m] = brought[m][i];
      }
      const float expected =
          kind() == 0 ? value(root(), i) : tree_sum<float>(std::span<const float>(terms));
      check(std::bit_cast<std::uint32_t>(out[i]) == std::bit_cast<std::uint32_t>(expected),
            "operation {}: element {} of {} is {}, not {}", id_, i, elements_, out[i], expected);
    }
  }

  Random random_;
  std::uint64_t id_;
  std::size_t elements_ = 0;
  std::vector<Rank> members_;
};

// Some at once, in the order of their ids; all end before the next batch begins.
Task<void> batch(Engine& engine, Random random, std::uint64_t first_id) {
  const std::uint64_t count = 1 + random.below(4, 0);
  std::vector<Bout> bouts;
  for (std::uint64_t i = 0; i < count; ++i) {
    bouts.emplace_back(random.stream(10 + i), first_id + i, engine.size());
  }
  std::vector<Running<void>> running;
  for (const Bout& bout : bouts) {
    if (bout.includes(engine.rank())) {
      running.emplace_back(bout.run(engine));
    }
  }
  std::exception_ptr error;
  for (Running<void>& one : running) {
    try {
      co_await one;
    } catch (...) {
      error = error ? error : std::current_exception();
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

int main_of(int argc, char** argv) {
  const double length = argc > 1 ? std::stod(argv[1]) : 10;
  const Random random(argc > 2 ? std::stoull(argv[2]) : 1);
  comm::ConnectOptions options;
  options.engine.max_stall = std::chrono::seconds(60);
  const auto workers = comm::connect(options);
  const std::vector<Rank> everyone = workers->everyone();
  const auto until = std::chrono::steady_clock::now() + Seconds(length);
  std::uint64_t batches = 0;
  // Worker 0's clock decides for all: it broadcasts whether to go on.
  for (float go_on = 1; go_on != 0; ++batches) {
    const std::uint64_t first_id = batches * 16 + 1;
    const float more = std::chrono::steady_clock::now() < until ? 1.0F : 0.0F;
    workers->run([&](Engine& engine) {
      return comm::broadcast(engine, {.id = first_id, .members = everyone}, Rank{0},
                             comm::input(std::span(&more, 1)), comm::output(std::span(&go_on, 1)));
    });
    workers->run(
        [&](Engine& engine) { return batch(engine, random.stream(batches), first_id + 1); });
  }
  if (workers->rank() == Rank{0}) {
    fmt::print("{} batches of random collectives, every result checked: {}\n", batches,
               workers->facts().summary());
  }
  return 0;
}

}  // namespace
}  // namespace starling::test

int main(int argc, char** argv) {
  return starling::test::guarded(starling::test::main_of, argc, argv);
}
