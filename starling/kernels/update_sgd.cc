#include <cstddef>

#include "starling/base/error.h"
#include "starling/kernels/update.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starling/kernels/update_sgd.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "starling/kernels/update_inl.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

struct Mix {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, const StreamsOf<D>& streams, std::size_t i) const {
    return store(d, mixed(d, streams, i), streams, i);
  }
};

template <typename T>
struct Sgd {
  SgdStep<T> step;
  T* momentum;

  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, const StreamsOf<D>& streams, std::size_t i) const {
    const auto x = mixed(d, streams, i);
    auto g = decayed(d, gradient(d, streams, i), step.decay, x);
    auto zero = hn::Zero(d);
    if (step.momentum != 0) {
      auto b = g;
      if (!step.first) {
        b = weighted(d, step.momentum, hn::LoadU(d, momentum + i), 1 - step.dampening, g);
      }
      zero = store_state(d, b, momentum + i);
      g = step.nesterov ? hn::Add(g, hn::Mul(hn::Set(d, step.momentum), b)) : b;
    }
    const auto moved = hn::Sub(x, hn::Mul(hn::Set(d, step.lr), g));
    return hn::Or(zero, store(d, moved, streams, i));
  }
};

bool none_float(const Streams<float>& streams) { return pass(streams, Mix{}); }
bool none_double(const Streams<double>& streams) { return pass(streams, Mix{}); }
bool sgd_float(const Streams<float>& streams, const SgdStep<float>& step, float* momentum) {
  return pass(streams, Sgd<float>{step, momentum});
}
bool sgd_double(const Streams<double>& streams, const SgdStep<double>& step, double* momentum) {
  return pass(streams, Sgd<double>{step, momentum});
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starling::kernels {

HWY_EXPORT(none_float);
HWY_EXPORT(none_double);
HWY_EXPORT(sgd_float);
HWY_EXPORT(sgd_double);

bool update_none(const Streams<float>& streams) {
  return HWY_DYNAMIC_DISPATCH(none_float)(streams);
}
bool update_none(const Streams<double>& streams) {
  return HWY_DYNAMIC_DISPATCH(none_double)(streams);
}

bool update_sgd(const Streams<float>& streams, const SgdStep<float>& step, float* momentum) {
  check(step.momentum == 0 || momentum != nullptr, "momentum without memory for it");
  return streams.gradient == nullptr ? update_none(streams)
                                     : HWY_DYNAMIC_DISPATCH(sgd_float)(streams, step, momentum);
}
bool update_sgd(const Streams<double>& streams, const SgdStep<double>& step, double* momentum) {
  check(step.momentum == 0 || momentum != nullptr, "momentum without memory for it");
  return streams.gradient == nullptr ? update_none(streams)
                                     : HWY_DYNAMIC_DISPATCH(sgd_double)(streams, step, momentum);
}

}  // namespace starling::kernels
#endif  // HWY_ONCE
