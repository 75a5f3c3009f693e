#include "bench/rivals/streams.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "starling/kernels/copy.h"
#include "starling/kernels/sum.h"

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace starling::rivals {
namespace {

void store_lines(float* into, const float* from, std::size_t floats) {
#ifdef __AVX__
  for (std::size_t i = 0; i < floats; i += 8) {
    _mm256_stream_ps(into + i, _mm256_load_ps(from + i));
  }
#else
  std::memcpy(into, from, floats * sizeof(float));
#endif
}

void fence() {
#ifdef __AVX__
  _mm_sfence();
#endif
}

// One chunk; constant bounds, so that a small one stays in registers.
template <std::size_t kChunk>
void sum_chunk(std::span<float* const> results, std::span<const float* const> sources,
               std::size_t begin) {
  alignas(64) float sum[kChunk];
  std::copy_n(sources[0] + begin, kChunk, sum);
  for (const float* const source : sources.subspan(1)) {
    for (std::size_t i = 0; i < kChunk; ++i) {
      sum[i] += source[begin + i];
    }
  }
  for (float* const result : results) {
    store_lines(result + begin, sum, kChunk);
  }
}

}  // namespace

void sum_by_kernels(std::span<float* const> results, std::span<const float* const> sources,
                    std::size_t begin, std::size_t end) {
  constexpr std::size_t kChunk = 16384;
  alignas(64) float memory[kChunk];
  std::vector<const float*> parts(sources.size());
  for (; begin < end; begin += kChunk) {
    const std::span<float> sum(memory, std::min(kChunk, end - begin));
    std::transform(sources.begin(), sources.end(), parts.begin(),
                   [&](const float* source) { return source + begin; });
    kernels::sum(sum, parts);
    for (float* const result : results) {
      kernels::copy(std::as_writable_bytes(std::span<float>(result + begin, sum.size())),
                    std::as_bytes(sum), kernels::Store::Streaming);
    }
  }
}

template <std::size_t kChunk>
void sum_by_hand(std::span<float* const> results, std::span<const float* const> sources,
                 std::size_t begin, std::size_t end) {
  for (; begin + kChunk <= end; begin += kChunk) {
    sum_chunk<kChunk>(results, sources, begin);
  }
  for (; begin < end; begin += kLineFloats) {
    sum_chunk<kLineFloats>(results, sources, begin);
  }
  fence();
}

template Sum sum_by_hand<32>;
template Sum sum_by_hand<256>;
template Sum sum_by_hand<1024>;

}  // namespace starling::rivals
