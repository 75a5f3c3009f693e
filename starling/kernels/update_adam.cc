#include <cmath>
#include <cstddef>

#include "starling/base/error.h"
#include "starling/kernels/update.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starling/kernels/update_adam.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "starling/kernels/update_inl.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

template <typename T>
struct Moments {
  T* first;
  T* second;
  T* accumulated;
};

template <bool kAccumulated, typename T>
struct Adam {
  Adam(const AdamStep<T>& s, const Moments<T>& state)
      : step(s),
        lr(s.lr * std::sqrt(s.correction2) / s.correction1),
        epsilon(s.epsilon * std::sqrt(s.correction2)),
        part(1 / static_cast<T>(s.window)),
        moments(state) {}

  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, const StreamsOf<D>& streams, std::size_t i) const {
    const auto x = mixed(d, streams, i);
    const auto g = decayed(d, gradient(d, streams, i), step.decay, x);
    const auto old_m = hn::LoadU(d, moments.first + i);
    const auto old_v = hn::LoadU(d, moments.second + i);
    const auto m = weighted(d, step.beta1, old_m, step.rest1, g);
    const auto v = weighted(d, step.beta2, old_v, step.rest2, hn::Mul(g, g));
    const auto update =
        hn::Div(hn::Mul(hn::Set(d, lr), m), hn::Add(hn::Sqrt(v), hn::Set(d, epsilon)));
    const auto moved = hn::Sub(hn::Mul(hn::Set(d, step.shrink), x), update);
    const auto zero = store(d, moved, streams, i);
    if constexpr (kAccumulated) {
      return hn::Or(zero, accumulate(d, i, g, old_m, old_v));
    } else {
      hn::StoreU(m, d, moments.first + i);  // unless it is finite, the model is not
      return hn::Or(zero, store_state(d, v, moments.second + i));
    }
  }

  template <class D, class V>
  HWY_INLINE V accumulate(D d, std::size_t i, V g, V m, V v) const {
    const auto before = hn::LoadU(d, moments.accumulated + i);
    const auto a = hn::Add(before, hn::Mul(g, hn::Set(d, part)));
    if (!step.ends_window) {
      return store_state(d, a, moments.accumulated + i);
    }
    hn::StoreU(hn::Zero(d), d, moments.accumulated + i);
    const auto first = weighted(d, step.beta1, m, step.rest1, a);
    const auto second = weighted(d, step.beta2, v, step.rest2, hn::Mul(a, a));
    return hn::Or(store_state(d, first, moments.first + i),
                  store_state(d, second, moments.second + i));
  }

  AdamStep<T> step;
  T lr;
  T epsilon;
  T part;
  Moments<T> moments;
};

template <typename T>
HWY_INLINE bool adam(const Streams<T>& streams, const AdamStep<T>& step, const Moments<T>& state) {
  return step.window > 1 ? pass(streams, Adam<true, T>(step, state))
                         : pass(streams, Adam<false, T>(step, state));
}

bool adam_float(const Streams<float>& streams, const AdamStep<float>& step, float* first_moment,
                float* second_moment, float* accumulated) {
  return adam<float>(streams, step, {first_moment, second_moment, accumulated});
}
bool adam_double(const Streams<double>& streams, const AdamStep<double>& step, double* first_moment,
                 double* second_moment, double* accumulated) {
  return adam<double>(streams, step, {first_moment, second_moment, accumulated});
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starling::kernels {

HWY_EXPORT(adam_float);
HWY_EXPORT(adam_double);

bool update_adam(const Streams<float>& streams, const AdamStep<float>& step, float* first_moment,
                 float* second_moment, float* accumulated) {
  check(step.window <= 1 || accumulated != nullptr, "a window without memory for it");
  if (streams.gradient == nullptr) {
    return update_none(streams);
  }
  return HWY_DYNAMIC_DISPATCH(adam_float)(streams, step, first_moment, second_moment, accumulated);
}
bool update_adam(const Streams<double>& streams, const AdamStep<double>& step, double* first_moment,
                 double* second_moment, double* accumulated) {
  check(step.window <= 1 || accumulated != nullptr, "a window without memory for it");
  if (streams.gradient == nullptr) {
    return update_none(streams);
  }
  return HWY_DYNAMIC_DISPATCH(adam_double)(streams, step, first_moment, second_moment, accumulated);
}

}  // namespace starling::kernels
#endif  // HWY_ONCE
