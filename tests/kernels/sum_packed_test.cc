#include "starling/kernels/sum_packed.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "starling/base/error.h"
#include "starling/kernels/sum.h"
#include "tests/kernels/every_target.h"
#include "tests/kernels/reference.h"

namespace starling::kernels {
namespace {

// Source j begins j % 5 elements into its memory.
template <typename T>
void expect_as_unpacked(std::size_t k, std::size_t n, std::size_t offset) {
  SCOPED_TRACE(fmt::format("{} sources of {}, offset {}", k, n, offset));
  std::vector<std::vector<Bf16>> packed;
  std::vector<std::vector<T>> wide;
  std::vector<const Bf16*> sources;
  std::vector<const T*> wide_sources;
  for (std::size_t j = 0; j < k; ++j) {
    const std::vector<T> given = values<T>(n + 5, 100 + j);
    packed.emplace_back(given.size());
    pack(packed.back(), given);
    wide.emplace_back(given.size());
    unpack(wide.back(), packed.back());
    sources.push_back(packed.back().data() + j % 5);
    wide_sources.push_back(wide.back().data() + j % 5);
  }
  std::vector<T> wanted(n);
  sum(std::span<T>(wanted), wide_sources);
  Guarded<T> into(n, offset);
  sum_packed(into.span(), sources);
  expect_same_bits<T>(into.span(), wanted);
  into.expect_guards_untouched();
}

class PackedSums : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Kernels, PackedSums, every_target(), target_name);

TEST_P(PackedSums, EveryCountOfSources) {
  std::vector<std::size_t> counts = {31, 32, 33, 64, 65, 100};
  for (std::size_t k = 1; k <= 20; ++k) {
    counts.push_back(k);
  }
  for (const std::size_t k : counts) {
    for (const std::size_t n : {1u, 19u, 64u, 1500u}) {
      expect_as_unpacked<float>(k, n, n % 3);
      expect_as_unpacked<double>(k, n, n % 3);
    }
  }
}

TEST_P(PackedSums, EveryShortLengthAndOffset) {
  for (std::size_t n = 0; n <= 70; ++n) {
    for (const std::size_t k : {1u, 2u, 3u, 7u, 8u, 11u}) {
      expect_as_unpacked<float>(k, n, (n + k) % 17);
      expect_as_unpacked<double>(k, n, (n + k) % 17);
    }
  }
}

TEST_P(PackedSums, ALongBufferHasSpecialNumbersInEverySource) {
  for (const std::size_t k : {1u, 2u, 5u, 9u}) {
    expect_as_unpacked<float>(k, 50'000, 1);
    expect_as_unpacked<double>(k, 50'000, 1);
  }
}

TEST_P(PackedSums, NoSourcesAreRefused) {
  std::vector<float> into(3);
  EXPECT_THROW(sum_packed(std::span(into), {}), Error);
}

}  // namespace
}  // namespace starling::kernels
