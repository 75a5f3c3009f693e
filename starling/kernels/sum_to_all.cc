#include "starling/kernels/sum_to_all.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "starling/base/error.h"
#include "starling/kernels/copy.h"
#include "starling/kernels/sum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starling/kernels/sum_to_all.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "starling/kernels/tree_inl.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

template <typename T>
struct Place {
  const T* from;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    return hn::LoadU(d, from + i);
  }
};

struct Whole {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return one_nan(d, v);
  }
};

// Two lines at a time: enough to keep the write-combining buffers of all results busy in turn.
template <std::size_t kCount, typename T>
void spread(std::span<T* const> into, std::size_t size, std::span<const T* const> sources) {
  Node<kCount, Place<T>, NothingPending, Whole> sum{{}, {}, {}};
  for (std::size_t j = 0; j < kCount; ++j) {
    sum.terms[j].from = sources[j];
  }
  const hn::CappedTag<T, 32 / sizeof(T)> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= size; i += 4 * lanes) {
    const auto a = sum(d, i);
    const auto b = sum(d, i + lanes);
    const auto c = sum(d, i + 2 * lanes);
    const auto e = sum(d, i + 3 * lanes);
    for (T* result : into) {
      hn::Stream(a, d, result + i);
      hn::Stream(b, d, result + i + lanes);
      hn::Stream(c, d, result + i + 2 * lanes);
      hn::Stream(e, d, result + i + 3 * lanes);
    }
  }
  for (T* result : into) {
    fill_singly(result, i, size, sum);
  }
}

template <typename T>
void spread_all(std::span<T* const> into, std::size_t size, std::span<const T* const> sources) {
  switch (sources.size()) {
    case 2:
      spread<2>(into, size, sources);
      break;
    case 3:
      spread<3>(into, size, sources);
      break;
    case 4:
      spread<4>(into, size, sources);
      break;
    case 5:
      spread<5>(into, size, sources);
      break;
    case 6:
      spread<6>(into, size, sources);
      break;
    case 7:
      spread<7>(into, size, sources);
      break;
    default:
      spread<kGroup>(into, size, sources);
      break;
  }
  hwy::FlushStream();
}

void spread_float(std::span<float* const> into, std::size_t size,
                  std::span<const float* const> sources) {
  spread_all(into, size, sources);
}

void spread_double(std::span<double* const> into, std::size_t size,
                   std::span<const double* const> sources) {
  spread_all(into, size, sources);
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

namespace starling::kernels {

HWY_EXPORT(spread_float);
HWY_EXPORT(spread_double);

namespace {

constexpr std::size_t kMostInRegisters = 8;

template <typename T>
bool all_at_lines(std::span<T* const> into) {
  return std::all_of(into.begin(), into.end(),
                     [](const T* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; });
}

// Sums a piece that stays in the first-level cache, then copies it to everyone.
template <typename T>
void by_pieces(std::span<T* const> into, std::size_t size, std::span<const T* const> sources) {
  constexpr std::size_t kPiece = 16384 / sizeof(T);
  alignas(64) T sums[kPiece];
  std::vector<const T*> parts(sources.size());
  for (std::size_t at = 0; at < size; at += kPiece) {
    const std::span<T> piece(sums, std::min(kPiece, size - at));
    std::transform(sources.begin(), sources.end(), parts.begin(),
                   [&](const T* source) { return source + at; });
    sum(piece, parts);
    for (T* result : into) {
      kernels::copy(std::as_writable_bytes(std::span(result + at, piece.size())),
                    std::as_bytes(piece), Store::Streaming);
    }
  }
}

template <typename T>
bool fits_registers(std::span<T* const> into, std::span<const T* const> sources) {
  check(!sources.empty() && !into.empty(), "a sum of {} sources to {} places", sources.size(),
        into.size());
  return sources.size() > 1 && sources.size() <= kMostInRegisters && all_at_lines(into);
}

}  // namespace

void sum_to_all(std::span<float* const> into, std::size_t size,
                std::span<const float* const> sources) {
  if (fits_registers(into, sources)) {
    HWY_DYNAMIC_DISPATCH(spread_float)(into, size, sources);
  } else {
    by_pieces(into, size, sources);
  }
}

void sum_to_all(std::span<double* const> into, std::size_t size,
                std::span<const double* const> sources) {
  if (fits_registers(into, sources)) {
    HWY_DYNAMIC_DISPATCH(spread_double)(into, size, sources);
  } else {
    by_pieces(into, size, sources);
  }
}

}  // namespace starling::kernels
#endif  // HWY_ONCE
