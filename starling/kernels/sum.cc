#include "starling/kernels/sum.h"

#include <cstddef>

#include "starling/base/error.h"
#include "starling/kernels/copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starling/kernels/sum.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "starling/kernels/tree_inl.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

template <typename T>
struct Sources {
  struct Term {
    const T* from;
    template <class D>
    HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
      return hn::LoadU(d, from + i);
    }
  };

  std::span<const T* const> sources;
  std::size_t count() const { return sources.size(); }
  Term term(std::size_t j, std::size_t begin) const { return {sources[j] + begin}; }
};

template <typename T>
struct Scale {
  T scale;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return one_nan(d, hn::Mul(v, hn::Set(d, scale)));
  }
};

void scaled_sum_float(std::span<float> into, std::span<const float* const> sources, float scale,
                      Store store) {
  reduce(into, Sources<float>{sources}, Scale<float>{scale}, store);
}

void scaled_sum_double(std::span<double> into, std::span<const double* const> sources, double scale,
                       Store store) {
  reduce(into, Sources<double>{sources}, Scale<double>{scale}, store);
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starling::kernels {

HWY_EXPORT(scaled_sum_float);
HWY_EXPORT(scaled_sum_double);

namespace {

// Multiplying by one changes no bit, so the plain sum needs no loop of its own.
template <typename T>
void sum_of(std::span<T> into, std::span<const T* const> sources, Store store) {
  if (sources.size() == 1) {
    kernels::copy(std::as_writable_bytes(into), std::as_bytes(std::span(sources[0], into.size())),
                  store);
  } else {
    scaled_sum(into, sources, T{1}, store);
  }
}

}  // namespace

void sum(std::span<float> into, std::span<const float* const> sources, Store store) {
  sum_of(into, sources, store);
}

void sum(std::span<double> into, std::span<const double* const> sources, Store store) {
  sum_of(into, sources, store);
}

void scaled_sum(std::span<float> into, std::span<const float* const> sources, float scale,
                Store store) {
  check(!sources.empty(), "a sum of no sources");
  HWY_DYNAMIC_DISPATCH(scaled_sum_float)(into, sources, scale, store);
}

void scaled_sum(std::span<double> into, std::span<const double* const> sources, double scale,
                Store store) {
  check(!sources.empty(), "a sum of no sources");
  HWY_DYNAMIC_DISPATCH(scaled_sum_double)(into, sources, scale, store);
}

}  // namespace starling::kernels
#endif  // HWY_ONCE
