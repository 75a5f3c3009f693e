#include "bench/rivals/streams.h"

#include <algorithm>
#include <vector>

#include "starling/kernels/copy.h"
#include "starling/kernels/sum.h"

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace starling::rivals {
namespace {

// Written out as vectors: left to itself the compiler vectorises over the sources, with gathers.
using Vector [[gnu::vector_size(32), gnu::may_alias]] = float;
constexpr std::size_t kLanes = sizeof(Vector) / sizeof(float);

Vector load(const float* from) { return *reinterpret_cast<const Vector*>(from); }

void store(float* into, Vector v) {
#ifdef __AVX__
  _mm256_stream_ps(into, v);
#else
  *reinterpret_cast<Vector*>(into) = v;
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
  constexpr std::size_t kVectors = kChunk / kLanes;
  Vector sum[kVectors];
  for (std::size_t i = 0; i < kVectors; ++i) {
    sum[i] = load(sources[0] + begin + i * kLanes);
  }
  for (const float* const source : sources.subspan(1)) {
    for (std::size_t i = 0; i < kVectors; ++i) {
      sum[i] += load(source + begin + i * kLanes);
    }
  }
  for (float* const result : results) {
    for (std::size_t i = 0; i < kVectors; ++i) {
      store(result + begin + i * kLanes, sum[i]);
    }
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
