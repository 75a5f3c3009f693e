#include <cstddef>

#include "starling/kernels/update.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starling/kernels/sum_of_squares.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kSums = 16;

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const double* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), from));
}

template <class D, typename T>
HWY_INLINE void add_squares(D d, const T* from, double* sums) {
  const auto x = load(d, from);
  hn::StoreU(hn::Add(hn::LoadU(d, sums), hn::Mul(x, x)), d, sums);
}

template <typename T>
HWY_INLINE double squares(const T* values, std::size_t size) {
  const hn::CappedTag<double, kSums> d;
  const hn::CappedTag<double, 1> one;
  HWY_ALIGN double sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= size; i += kSums) {
    for (std::size_t j = 0; j < kSums; j += hn::Lanes(d)) {
      add_squares(d, values + i + j, sums + j);
    }
  }
  for (; i < size; ++i) {
    add_squares(one, values + i, sums + i % kSums);
  }
  for (std::size_t half = kSums / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) {
      sums[j] += sums[j + half];
    }
  }
  return sums[0];
}

double squares_float(const float* values, std::size_t size) { return squares(values, size); }
double squares_double(const double* values, std::size_t size) { return squares(values, size); }

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starling::kernels {

HWY_EXPORT(squares_float);
HWY_EXPORT(squares_double);

double sum_of_squares(const float* values, std::size_t size) {
  return HWY_DYNAMIC_DISPATCH(squares_float)(values, size);
}
double sum_of_squares(const double* values, std::size_t size) {
  return HWY_DYNAMIC_DISPATCH(squares_double)(values, size);
}

}  // namespace starling::kernels
#endif  // HWY_ONCE
