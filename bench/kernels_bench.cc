// The kernels against the plain loop over the same streams, and against memcpy.
//
// The machine is noisy, so kernel and rivals take turns and the fastest turn of each counts. Bytes
// are those that the loop names: every source read once, the result written once. GB/s are 10^9.
// Sizes are the sum of all buffers: 1 MB stays in cache, 100 MB does not.
//
//   kernels_bench [--json]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/train/plain_update.h"
#include "starling/base/time.h"
#include "starling/kernels/copy.h"
#include "starling/kernels/mix.h"
#include "starling/kernels/sum.h"
#include "starling/kernels/update.h"
#include "starling/kernels/wire.h"

namespace starling::kernels {
namespace {

// Rivals: what one would write, given to the compiler with the freedom to vectorise.

template <typename T>
void plain_copy(T* __restrict into, const T* __restrict from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    into[i] = from[i];
  }
}

template <typename T, std::size_t... j>
void plain_sum(T* __restrict into, const T* const* sources, const T* weights, std::size_t n,
               std::index_sequence<j...>) {
  const T* const s[] = {sources[j]...};
  if (weights == nullptr) {
    for (std::size_t i = 0; i < n; ++i) {
      into[i] = (s[j][i] + ...);
    }
  } else {
    const T w[] = {weights[j]...};
    for (std::size_t i = 0; i < n; ++i) {
      into[i] = ((w[j] * s[j][i]) + ...);
    }
  }
}

// Many sources: eight at a time into blocks that stay in the first-level cache. Requires: a
// multiple of eight.
template <typename T>
void plain_blocked_sum(T* __restrict into, std::span<const T* const> sources, const T* weights,
                       std::size_t n) {
  constexpr std::size_t kBlock = 1024;
  T part[kBlock];
  T total[kBlock];
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t size = std::min(kBlock, n - begin);
    std::fill_n(total, size, T{0});
    for (std::size_t first = 0; first < sources.size(); first += 8) {
      const T* group[8];
      for (std::size_t j = 0; j < 8; ++j) {
        group[j] = sources[first + j] + begin;
      }
      plain_sum(part, group, weights == nullptr ? nullptr : weights + first, size,
                std::make_index_sequence<8>());
      for (std::size_t i = 0; i < size; ++i) {
        total[i] += part[i];
      }
    }
    std::copy_n(total, size, into + begin);
  }
}

template <typename T>
void plain_tree(T* into, std::span<const T* const> sources, const T* weights, std::size_t n) {
  switch (sources.size()) {
    case 2:
      return plain_sum(into, sources.data(), weights, n, std::make_index_sequence<2>());
    case 3:
      return plain_sum(into, sources.data(), weights, n, std::make_index_sequence<3>());
    case 4:
      return plain_sum(into, sources.data(), weights, n, std::make_index_sequence<4>());
    case 8:
      return plain_sum(into, sources.data(), weights, n, std::make_index_sequence<8>());
    default:
      return plain_blocked_sum(into, sources, weights, n);
  }
}

// The streams of a conversion without its arithmetic: no loop over them can be faster.
template <typename To, typename From>
void plain_convert(To* __restrict into, const From* __restrict from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if constexpr (sizeof(To) == 2) {
      into[i].bits = static_cast<std::uint16_t>(static_cast<int>(from[i]));
    } else {
      into[i] = static_cast<To>(from[i].bits);
    }
  }
}

struct Row {
  std::string kernel;
  std::size_t size;
  double kernel_rate;
  double plain_rate;
  double memcpy_rate;
};

// Seconds of the fastest of many turns, the contestants taking turns.
std::vector<double> fastest(const std::vector<std::function<void()>>& contestants,
                            std::size_t size) {
  const std::size_t turns = size < 10'000'000 ? 400 : 12;
  const std::size_t calls = size < 10'000'000 ? 8 : 1;
  std::vector<double> best(contestants.size(), std::numeric_limits<double>::infinity());
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (std::size_t c = 0; c < contestants.size(); ++c) {
      contestants[c]();  // brings its own buffers back into the cache
      const WallTime start = std::chrono::steady_clock::now();
      for (std::size_t call = 0; call < calls; ++call) {
        contestants[c]();
      }
      const double time = seconds(std::chrono::steady_clock::now() - start);
      best[c] = std::min(best[c], time / static_cast<double>(calls));
    }
  }
  return best;
}

class Bench {
 public:
  Bench() : memory_(110'000'000 / 8, 1.0) {}

  void run(std::size_t size) {
    copies(size);
    for (const std::size_t k : {2, 3, 4, 8, 64}) {
      sums<float>("float", k, size);
    }
    sums<double>("double", 4, size);
    converts<Bf16, float>("bf16/float", size);
    converts<Fp16, float>("fp16/float", size);
    converts<Bf16, double>("bf16/double", size);
    converts<Fp16, double>("fp16/double", size);
    updates(size);
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  // Buffers follow each other at a distance that is no power of two, as allocators give them.
  template <typename T>
  T* buffer(std::size_t number, std::size_t bytes) {
    const std::size_t stride = (bytes + 4096 + 320) / 64 * 64;
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(memory_.data()) + number * stride);
  }

  void race(const std::string& name, std::size_t bytes, std::function<void()> kernel,
            std::function<void()> plain) {
    auto* half = buffer<std::byte>(0, 0);
    const auto reference = [half, bytes] { std::memcpy(half + bytes / 2, half, bytes / 2); };
    const std::vector<double> time =
        fastest({std::move(kernel), std::move(plain), reference}, bytes);
    const double gigabytes = static_cast<double>(bytes) / 1e9;
    rows_.push_back({name, bytes, gigabytes / time[0], gigabytes / time[1], gigabytes / time[2]});
  }

  void copies(std::size_t size) {
    const std::size_t n = size / 2;
    const std::span into(buffer<std::byte>(1, n), n);
    const std::span<const std::byte> from(buffer<std::byte>(0, n), n);
    const auto plain = [=] { plain_copy(into.data(), from.data(), n); };
    race("copy", 2 * n, [=] { kernels::copy(into, from); }, plain);
    race("copy, streaming", 2 * n, [=] { kernels::copy(into, from, Store::Streaming); }, plain);
  }

  template <typename T>
  void sums(std::string_view type, std::size_t k, std::size_t size) {
    const std::size_t n = size / (k + 1) / sizeof(T);
    const std::span<T> into(buffer<T>(k, n * sizeof(T)), n);
    std::vector<const T*> from;
    for (std::size_t j = 0; j < k; ++j) {
      from.push_back(buffer<T>(j, n * sizeof(T)));
    }
    const std::vector<T> weights(k, T{1} / static_cast<T>(k));
    const std::size_t bytes = (k + 1) * n * sizeof(T);
    const auto plain = [=] { plain_tree<T>(into.data(), from, nullptr, n); };
    const auto plain_mix = [=] { plain_tree<T>(into.data(), from, weights.data(), n); };
    const auto name = [&](std::string_view verb) { return fmt::format("{} {} {}", verb, k, type); };
    race(name("sum"), bytes, [=] { sum(into, from); }, plain);
    race(name("sum") + ", streaming", bytes, [=] { sum(into, from, Store::Streaming); }, plain);
    race(name("scaled_sum"), bytes, [=] { scaled_sum(into, from, T{0.5}); }, plain);
    race(name("mix"), bytes, [=] { mix(into, from, weights); }, plain_mix);
    race(
        name("mix") + ", streaming", bytes, [=] { mix(into, from, weights, Store::Streaming); },
        plain_mix);
  }

  template <typename Wire, typename T>
  void converts(std::string_view type, std::size_t size) {
    const std::size_t n = size / (sizeof(T) + sizeof(Wire));
    const std::span<T> wide(buffer<T>(0, n * sizeof(T)), n);
    const std::span<Wire> narrow(buffer<Wire>(1, n * sizeof(T)), n);
    const std::size_t bytes = n * (sizeof(T) + sizeof(Wire));
    std::fill(wide.begin(), wide.end(), T{1.5});
    race(
        fmt::format("pack {}", type), bytes, [=] { pack(narrow, wide); },
        [=] { plain_convert(narrow.data(), wide.data(), n); });
    race(
        fmt::format("unpack {}", type), bytes, [=] { unpack(wide, narrow); },
        [=] { plain_convert(wide.data(), narrow.data(), n); });
    std::fill(memory_.begin(), memory_.end(), 1.0);
  }

  // AdamW with a mix and a snapshot: five streams are read, four written, of which three are both.
  void updates(std::size_t size) {
    const std::size_t n = size / 9 / sizeof(float);
    const auto stream = [&](std::size_t number) {
      auto* memory = buffer<float>(number, n * sizeof(float));
      std::fill_n(memory, n, 1.5f);
      return memory;
    };
    float* const model = stream(0);
    float* const copy = stream(1);
    float* const result = stream(2);
    float* const gradient = stream(3);
    float* const m = stream(4);
    float* const v = stream(5);
    const Streams<float> streams{.size = n,
                                 .from = model,
                                 .into = model,
                                 .copy = copy,
                                 .result = result,
                                 .of_from = 0.5f,
                                 .of_result = 0.5f,
                                 .gradient = gradient};
    const AdamStep<float> step{.lr = 1e-3f,
                               .beta1 = 0.9f,
                               .rest1 = 0.1f,
                               .beta2 = 0.999f,
                               .rest2 = 0.001f,
                               .epsilon = 1e-8f,
                               .shrink = 0.99999f};
    race(
        "mix, adamw and copy float", 9 * n * sizeof(float),
        [=] { update_adam(streams, step, m, v, nullptr); },
        [=] { train::plain_adamw(model, copy, result, 0.5f, 0.5f, gradient, m, v, n, step); });
    std::fill(memory_.begin(), memory_.end(), 1.0);
  }

  std::vector<double> memory_;
  std::vector<Row> rows_;
};

// How many times faster the same kernel is from cache.
double against_memory(const std::vector<Row>& rows, const Row& row) {
  for (const Row& other : rows) {
    if (other.kernel == row.kernel && other.size > 10 * row.size) {
      return row.kernel_rate / other.kernel_rate;
    }
  }
  return 1;
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("{:28} {:>7} {:>9} {:>9} {:>9} {:>7} {:>9}\n", "kernel", "MB", "GB/s", "plain",
             "memcpy", "ratio", "x memory");
  for (const Row& r : rows) {
    fmt::print("{:28} {:7.0f} {:9.1f} {:9.1f} {:9.1f} {:7.2f} {:9.1f}\n", r.kernel,
               static_cast<double>(r.size) / 1e6, r.kernel_rate, r.plain_rate, r.memcpy_rate,
               r.kernel_rate / r.plain_rate, against_memory(rows, r));
  }
}

void print_json(const std::vector<Row>& rows) {
  fmt::print("[");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    fmt::print(R"({}{{"kernel": "{}", "bytes": {}, "GB/s": {:.3f}, "plain GB/s": {:.3f}, )"
               R"("memcpy GB/s": {:.3f}, "ratio": {:.3f}}})",
               i == 0 ? "\n" : ",\n", r.kernel, r.size, r.kernel_rate, r.plain_rate, r.memcpy_rate,
               r.kernel_rate / r.plain_rate);
  }
  fmt::print("\n]\n");
}

}  // namespace
}  // namespace starling::kernels

int main(int argc, char** argv) {
  starling::kernels::Bench bench;
  bench.run(1'000'000);
  bench.run(100'000'000);
  if (argc > 1 && std::string_view(argv[1]) == "--json") {
    starling::kernels::print_json(bench.rows());
  } else {
    starling::kernels::print_table(bench.rows());
  }
}
