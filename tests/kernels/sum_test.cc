#include "starling/kernels/sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "starling/base/error.h"
#include "starling/kernels/mix.h"
#include "tests/kernels/every_target.h"
#include "tests/kernels/reference.h"

namespace starling::kernels {
namespace {

enum class Kernel { Sum, ScaledSum, Mix };

// k sources, source j beginning j % 5 elements into its memory, and what each kernel makes of them.
template <typename T>
struct Case {
  Case(std::size_t k, std::size_t n) : size(n), weights(values<T>(k, 1)) {
    for (std::size_t j = 0; j < k; ++j) {
      memory.push_back(values<T>(n + 5, 100 + j));
      sources.push_back(memory.back().data() + j % 5);
    }
    // Infinite weights would leave nothing but NaN.
    std::replace_if(weights.begin(), weights.end(), [](T w) { return !std::isfinite(w); }, T{3});
  }

  std::vector<T> reference(Kernel kernel) const {
    std::vector<T> result(size);
    for (std::size_t i = 0; i < size; ++i) {
      std::vector<T> terms;
      for (std::size_t j = 0; j < sources.size(); ++j) {
        terms.push_back(kernel == Kernel::Mix ? weights[j] * sources[j][i] : sources[j][i]);
      }
      const T total = tree(terms);
      result[i] = kernel == Kernel::ScaledSum                  ? one_nan(total * scale)
                  : kernel == Kernel::Sum && terms.size() == 1 ? total
                                                               : one_nan(total);
    }
    return result;
  }

  void run(Kernel kernel, std::span<T> into, std::span<const T* const> from, Store store) const {
    switch (kernel) {
      case Kernel::Sum:
        return sum(into, from, store);
      case Kernel::ScaledSum:
        return scaled_sum(into, from, scale, store);
      case Kernel::Mix:
        return mix(into, from, std::span<const T>(weights), store);
    }
  }

  std::size_t size;
  T scale = T{1} / 3;
  std::vector<T> weights;
  std::vector<std::vector<T>> memory;
  std::vector<const T*> sources;
};

constexpr Kernel kKernels[] = {Kernel::Sum, Kernel::ScaledSum, Kernel::Mix};

template <typename T>
void expect_reference(std::size_t k, std::size_t n, std::size_t offset) {
  const Case<T> c(k, n);
  for (const Kernel kernel : kKernels) {
    const std::vector<T> wanted = c.reference(kernel);
    for (const Store store : {Store::Cached, Store::Streaming}) {
      SCOPED_TRACE(fmt::format("kernel {}, {} sources, offset {}, store {}",
                               static_cast<int>(kernel), k, offset, static_cast<int>(store)));
      Guarded<T> into(n, offset);
      c.run(kernel, into.span(), c.sources, store);
      expect_same_bits<T>(into.span(), wanted);
      into.expect_guards_untouched();
    }
  }
}

class Sums : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Kernels, Sums, every_target(), target_name);

TEST_P(Sums, EveryCountOfSources) {
  std::vector<std::size_t> counts = {31, 32, 33, 64, 65, 100};
  for (std::size_t k = 1; k <= 20; ++k) {
    counts.push_back(k);
  }
  for (const std::size_t k : counts) {
    for (const std::size_t n : {1u, 19u, 64u}) {
      expect_reference<float>(k, n, n % 3);
      expect_reference<double>(k, n, n % 3);
    }
  }
}

TEST_P(Sums, EveryShortLengthAndOffset) {
  for (std::size_t n = 0; n <= 70; ++n) {
    for (const std::size_t k : {1u, 2u, 3u, 7u, 8u, 11u}) {
      expect_reference<float>(k, n, (n + k) % 17);
      expect_reference<double>(k, n, (n + k) % 17);
    }
  }
}

TEST_P(Sums, LongerThanChunks) {
  for (const std::size_t k : {2u, 9u, 33u, 64u}) {
    for (const std::size_t offset : {0u, 1u, 15u}) {
      expect_reference<float>(k, 2063, offset);
      expect_reference<double>(k, 1031, offset);
    }
  }
  expect_reference<float>(1000, 1100, 3);
  expect_reference<double>(1000, 520, 3);
  expect_reference<float>(4099, 3, 0);
}

template <typename T>
void expect_in_place(std::size_t k, std::size_t n) {
  for (std::size_t alias = 0; alias < k; alias += 1 + k / 4) {
    for (const Kernel kernel : kKernels) {
      for (const Store store : {Store::Cached, Store::Streaming}) {
        SCOPED_TRACE(fmt::format("{} sources, into source {}", k, alias));
        Case<T> c(k, n);
        const std::vector<T> wanted = c.reference(kernel);
        const std::span<T> into(c.memory[alias].data() + alias % 5, n);
        c.run(kernel, into, c.sources, store);
        expect_same_bits<T>(into, wanted);
      }
    }
  }
}

TEST_P(Sums, IntoOneOfTheSources) {
  for (const std::size_t k : {1u, 2u, 3u, 8u, 9u, 40u}) {
    expect_in_place<float>(k, 1500);
    expect_in_place<double>(k, 777);
  }
}

TEST_P(Sums, ChunksOfAnyLengthGiveTheSameBits) {
  const std::size_t n = 3001;
  for (const std::size_t k : {5u, 21u}) {
    const Case<float> c(k, n);
    for (const Kernel kernel : kKernels) {
      const std::vector<float> wanted = c.reference(kernel);
      for (const std::size_t chunk : {1u, 13u, 1024u, 2999u}) {
        std::vector<float> into(n);
        for (std::size_t begin = 0; begin < n; begin += chunk) {
          std::vector<const float*> from = c.sources;
          for (const float*& source : from) {
            source += begin;
          }
          const std::span<float> part(into.data() + begin, std::min(chunk, n - begin));
          c.run(kernel, part, from, chunk % 2 == 0 ? Store::Cached : Store::Streaming);
        }
        expect_same_bits<float>(into, wanted);
      }
    }
  }
}

TEST_P(Sums, TheTreeIsATreeAndNotAFold) {
  const float x[] = {1e8f, 1.0f, -1e8f, 1.0f};
  const float* sources[] = {x, x + 1, x + 2, x + 3};
  float into = 7;
  sum(std::span(&into, 1), sources);
  EXPECT_EQ(into, 0.0f);  // from left to right it would be 1
  sum(std::span(&into, 1), std::span(sources).first(3));
  EXPECT_EQ(into, 0.0f);
}

TEST_P(Sums, ProductsAreRoundedBeforeTheyAreAdded) {
  constexpr float kStep = 1.0f / 4096;
  const std::vector<float> x(64, 1 + kStep);
  const std::vector<float> y(64, -(1 + 2 * kStep));
  const std::vector<float> zeros(64, 0.0f);
  std::vector<float> into(64, 7);
  // Fused it would be 2^-24. Either product may be the one that a compiler fuses.
  const float* sources[] = {x.data(), y.data()};
  mix(into, sources, std::vector<float>{1 + kStep, 1});
  EXPECT_EQ(into, zeros);
  const float* swapped[] = {y.data(), x.data()};
  mix(into, swapped, std::vector<float>{1, 1 + kStep});
  EXPECT_EQ(into, zeros);
}

TEST_P(Sums, OneNanForAllAndOneSourceAsItIs) {
  const auto odd_nan = std::bit_cast<float>(0xff812345u);
  const std::vector<float> x(37, odd_nan);
  const float* sources[] = {x.data(), x.data()};
  std::vector<float> into(37);
  sum(into, sources);
  expect_same_bits<float>(into, std::vector(37, std::numeric_limits<float>::quiet_NaN()));
  sum(into, std::span(sources).first(1));
  expect_same_bits<float>(into, x);
}

TEST(SumContract, SourcesAndWeightsAreCounted) {
  std::vector<float> x(4);
  const float* sources[] = {x.data(), x.data()};
  const float weights[] = {1, 2, 3};
  EXPECT_THROW(sum(std::span(x), std::span<const float* const>()), Error);
  EXPECT_THROW(scaled_sum(std::span(x), std::span<const float* const>(), 1.0f), Error);
  EXPECT_THROW(mix(x, sources, weights), Error);
  EXPECT_THROW(mix(x, std::span<const float* const>(), std::span<const float>()), Error);
}

}  // namespace
}  // namespace starling::kernels
