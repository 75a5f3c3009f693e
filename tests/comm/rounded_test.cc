// All-reduce of contributions that travel as bf16, against the kernels: unpack(pack(x)) of every
// member, summed. Special numbers, every algorithm, long buffers whose packed pieces take turns in
// memory, and what travels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "starling/base/random.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/cost.h"
#include "starling/kernels/sum.h"
#include "starling/kernels/wire.h"
#include "starling/sim/cluster.h"

namespace starling::comm {
namespace {

constexpr AllReduce kAlgorithms[] = {AllReduce::Auto,    AllReduce::Doubling, AllReduce::Direct,
                                     AllReduce::Halving, AllReduce::Gather,   AllReduce::Shared};

// Numbers of very different size; some that bf16 cannot hold, and some that are none.
template <typename T>
std::vector<T> values(Rank rank, std::size_t size) {
  using Limits = std::numeric_limits<T>;
  constexpr T kSpecial[] = {Limits::infinity(), -Limits::quiet_NaN(), T{-0.0}, Limits::max(),
                            Limits::denorm_min()};
  const Random random = Random(7).stream(rank.value);
  std::vector<T> result(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t draw = random.below(500, 2 * i);
    result[i] = draw < std::size(kSpecial)
                    ? kSpecial[draw]
                    : static_cast<T>(random.normal(2 * i + 1) * static_cast<double>(draw));
  }
  return result;
}

template <typename T>
std::vector<T> by_kernels(std::size_t workers, std::size_t size) {
  std::vector<std::vector<T>> rounded;
  std::vector<const T*> sources;
  for (std::uint32_t r = 0; r < workers; ++r) {
    const std::vector<T> given = values<T>(Rank{r}, size);
    std::vector<kernels::Bf16> packed(size);
    kernels::pack(packed, given);
    rounded.emplace_back(size);
    kernels::unpack(rounded.back(), packed);
    sources.push_back(rounded.back().data());
  }
  std::vector<T> sum(size);
  kernels::sum(std::span<T>(sum), sources);
  return sum;
}

std::vector<Rank> everyone(std::size_t workers) {
  std::vector<Rank> members;
  for (std::uint32_t r = 0; r < workers; ++r) {
    members.push_back(Rank{r});
  }
  return members;
}

template <typename T>
Task<void> reduce(Engine& engine, std::size_t size, AllReduce algorithm, std::vector<T>& out) {
  const std::vector<T> in = values<T>(engine.rank(), size);
  out.assign(size, T{-1});
  const std::vector<Rank> members = everyone(engine.size());
  const ConstBuffer input = comm::input(std::span(in));
  const Buffer output = comm::output(std::span(out));
  co_await all_reduce(engine, {.id = 1, .members = members}, input, output, algorithm,
                      Precision::Bf16);
}

template <typename T>
void expect_the_kernels_bits(sim::ClusterOptions options, std::size_t size, AllReduce algorithm,
                             const std::vector<sim::Fault>& faults = {}) {
  const std::size_t workers = options.network.ports.workers;
  options.network.ports.per_node = algorithm == AllReduce::Shared ? workers : 1;
  sim::Cluster cluster(options);
  for (const sim::Fault& fault : faults) {
    cluster.network().plan(fault);
  }
  std::vector<std::vector<T>> outs(workers);
  sim::rethrow_first(cluster.run([&](Engine& engine) {
    return reduce<T>(engine, size, algorithm, outs[engine.rank().index()]);
  }));
  const std::vector<T> wanted = by_kernels<T>(workers, size);
  for (const std::vector<T>& out : outs) {
    ASSERT_EQ(std::memcmp(out.data(), wanted.data(), size * sizeof(T)), 0)
        << name_of(algorithm) << " of " << size << " among " << workers << ", chunks of "
        << options.engine.chunk;
  }
}

// Arithmetic is the same under sanitizers: there it is enough to go through all the code.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kMostWorkers = 4;
constexpr std::uint64_t kSeeds = 4;
#else
constexpr std::size_t kMostWorkers = 17;
constexpr std::uint64_t kSeeds = 20;
#endif

TEST(Rounded, TheBitsOfTheKernels) {
  for (const std::size_t workers : {1u, 2u, 3u, 4u, 5u, 6u, 9u, 17u}) {
    if (workers > kMostWorkers) {
      break;
    }
    for (const std::size_t size : {1u, 17u, 1014u, 1015u, 5003u}) {
      for (const std::size_t chunk : {0u, 64u, 4096u}) {
        sim::ClusterOptions options;
        options.network.ports.workers = workers;
        options.engine.chunk = chunk;
        for (const AllReduce algorithm : kAlgorithms) {
          expect_the_kernels_bits<float>(options, size, algorithm);
          expect_the_kernels_bits<double>(options, size, algorithm);
        }
      }
    }
  }
}

// Many chunks of bulk data: packed pieces lie where earlier ones lay. Slow, uneven lines and a
// worker that stops keep some of those waiting for their receiver.
TEST(Rounded, APieceStaysUntilItsReceiverHasTakenIt) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::size_t workers = 2 + seed % 4;
    sim::ClusterOptions options;
    options.network.seed = seed;
    options.network.ports.workers = workers;
    options.network.ports.bandwidth = 1e8;
    options.network.jitter = 1e-3;
    options.engine.chunk = 16384;
    options.engine.window = 2 + seed % 7;
    const std::vector<sim::Fault> stop = {
        {10 + 7 * seed, Rank{1}, sim::FaultKind::Stop, seed % 2 == 0 ? 0.1 : 0}};
    for (const AllReduce algorithm : {AllReduce::Direct, AllReduce::Gather}) {
      expect_the_kernels_bits<float>(options, 30'000 * workers, algorithm, stop);
    }
  }
}

// --- What travels ------------------------------------------------------------------------------

TEST(Rounded, AutoSendsTheFewestBytes) {
  for (const Type type : {Type::Float32, Type::Float64}) {
    const std::size_t fewer = shrink(type, Precision::Bf16);
    EXPECT_EQ(fewer, type == Type::Float32 ? 2u : 4u);
    for (std::size_t k = 2; k <= 16; ++k) {
      const std::size_t bytes = 6'400'000;
      const Link link{.latency = 1e-5, .bandwidth = 1e9};
      const auto sent = [&](AllReduce algorithm) {
        return all_reduce_cost(algorithm, k, static_cast<double>(bytes), link, fewer).bytes;
      };
      EXPECT_LE(sent(AllReduce::Auto), sent(AllReduce::Gather)) << k;
      EXPECT_LE(sent(AllReduce::Auto), sent(AllReduce::Direct)) << k;
      EXPECT_EQ(choose(k, bytes, fewer), k <= 1 + fewer ? AllReduce::Gather : AllReduce::Direct);
      EXPECT_EQ(choose(k, bytes, 1), AllReduce::Direct);
    }
    EXPECT_EQ(choose(1 + fewer, 4, fewer), AllReduce::Gather);
    EXPECT_EQ(choose(2 + fewer, 4, fewer), AllReduce::Doubling);
    EXPECT_EQ(choose(1024, 100'000, fewer), AllReduce::Halving);
  }
}

// Weightless: bulk bytes that each worker has put on the virtual network, to the byte.
std::uint64_t bulk_bytes(std::size_t workers, std::size_t bytes, Type type, Precision precision) {
  sim::ClusterOptions options;
  options.network.ports.workers = workers;
  options.payload = sim::Payload::Weightless;
  sim::Cluster cluster(options);
  const auto program = [](Engine& engine, std::size_t size, Type of, Precision how) -> Task<void> {
    const std::vector<Rank> members = everyone(engine.size());
    const ConstBuffer in{of, {nullptr, size}};
    const Buffer out{of, {nullptr, size}};
    co_await all_reduce(engine, {.id = 1, .members = members}, in, out, AllReduce::Auto, how);
  };
  sim::rethrow_first(
      cluster.run([&](Engine& engine) { return program(engine, bytes, type, precision); }));
  const std::uint64_t first = cluster.network().sent_by(Rank{0}).bulk_bytes;
  for (std::uint32_t r = 1; r < workers; ++r) {
    EXPECT_EQ(cluster.network().sent_by(Rank{r}).bulk_bytes, first) << r;
  }
  return first;
}

TEST(Rounded, TheBytesOnTheNetworkAreThoseOfTheHeader) {
  constexpr std::size_t kBytes = 30'720'000;  // of 64 k for every k below: cuts evenly
  const auto bf16 = [](std::size_t k, Type type) {
    return bulk_bytes(k, kBytes, type, Precision::Bf16);
  };
  EXPECT_EQ(bf16(1, Type::Float32), 0u);
  EXPECT_EQ(bf16(2, Type::Float32), kBytes / 2);
  EXPECT_EQ(bf16(3, Type::Float32), kBytes);
  for (const std::size_t k : {4u, 5u, 8u}) {
    EXPECT_EQ(bf16(k, Type::Float32), kBytes / k * (k - 1) * 3 / 2);
    EXPECT_EQ(bulk_bytes(k, kBytes, Type::Float32, Precision::Full), kBytes / k * (k - 1) * 2);
  }
  EXPECT_EQ(bf16(2, Type::Float64), kBytes / 4);
  EXPECT_EQ(bf16(5, Type::Float64), kBytes);
  EXPECT_EQ(bf16(8, Type::Float64), kBytes / 8 * 7 * 5 / 4);
}

}  // namespace
}  // namespace starling::comm
