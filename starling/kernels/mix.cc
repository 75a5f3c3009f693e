#include "starling/kernels/mix.h"

#include <cstddef>

#include "starling/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starling/kernels/mix.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "starling/kernels/tree_inl.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

template <typename T>
struct WeightedSources {
  struct Term {
    const T* from;
    T weight;
    template <class D>
    HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
      return hn::Mul(hn::Set(d, weight), hn::LoadU(d, from + i));
    }
  };

  std::span<const T* const> sources;
  std::span<const T> weights;
  std::size_t count() const { return sources.size(); }
  Term term(std::size_t j, std::size_t begin) const { return {sources[j] + begin, weights[j]}; }
};

struct Result {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return one_nan(d, v);
  }
};

void mix_float(std::span<float> into, std::span<const float* const> sources,
               std::span<const float> weights, Store store) {
  reduce(into, WeightedSources<float>{sources, weights}, Result{}, store);
}

void mix_double(std::span<double> into, std::span<const double* const> sources,
                std::span<const double> weights, Store store) {
  reduce(into, WeightedSources<double>{sources, weights}, Result{}, store);
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starling::kernels {

HWY_EXPORT(mix_float);
HWY_EXPORT(mix_double);

namespace {

void check_sizes(std::size_t sources, std::size_t weights) {
  check(sources > 0, "a mix of no sources");
  check(sources == weights, "{} sources, {} weights", sources, weights);
}

}  // namespace

void mix(std::span<float> into, std::span<const float* const> sources,
         std::span<const float> weights, Store store) {
  check_sizes(sources.size(), weights.size());
  HWY_DYNAMIC_DISPATCH(mix_float)(into, sources, weights, store);
}

void mix(std::span<double> into, std::span<const double* const> sources,
         std::span<const double> weights, Store store) {
  check_sizes(sources.size(), weights.size());
  HWY_DYNAMIC_DISPATCH(mix_double)(into, sources, weights, store);
}

}  // namespace starling::kernels
#endif  // HWY_ONCE
