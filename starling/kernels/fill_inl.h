// fill: writes an expression over a span, a vector at a time. Compiled once per instruction set
// (included between foreach_target.h and the kernel), hence the unusual guard.
//
// An expression is called as expression(tag, i) and returns elements i … i + lanes(tag) − 1. Head
// and tail are done with a one-lane tag, so that no element is computed twice (a result may replace
// its own source) and none outside the span is touched.
#if defined(STARLING_KERNELS_FILL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STARLING_KERNELS_FILL_INL_H_
#undef STARLING_KERNELS_FILL_INL_H_
#else
#define STARLING_KERNELS_FILL_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "starling/kernels/store.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Elements from `p` to the next address that is a multiple of `bytes`.
template <typename T>
HWY_INLINE std::size_t elements_to_boundary(const T* p, std::size_t bytes) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(p) % bytes;
  return past == 0 ? 0 : (bytes - past) / sizeof(T);
}

// Elements begin … end − 1, one at a time. Not inlined, for the sake of build time; takes a copy,
// so that the caller's expression never leaves registers.
template <typename T, class Expression>
HWY_NOINLINE void fill_singly(T* into, std::size_t begin, std::size_t end, Expression expression) {
  const hn::CappedTag<T, 1> one;
  for (std::size_t i = begin; i < end; ++i) {
    hn::StoreU(expression(one, i), one, into + i);
  }
}

// Cached stores.
template <class D, class Expression>
HWY_INLINE void fill(D d, hn::TFromD<D>* into, std::size_t size, const Expression& expression) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    hn::StoreU(expression(d, i), d, into + i);
  }
  fill_singly(into, i, size, expression);
}

// Streaming stores. Whoever calls this ends with hwy::FlushStream().
template <class D, class Expression>
HWY_INLINE void stream(D d, hn::TFromD<D>* into, std::size_t size, const Expression& expression) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = HWY_MIN(size, elements_to_boundary(into, lanes * sizeof(*into)));
  fill_singly(into, 0, i, expression);
  for (; i + lanes <= size; i += lanes) {
    hn::Stream(expression(d, i), d, into + i);
  }
  fill_singly(into, i, size, expression);
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#endif  // guard per target
