// What all updates share: the mix, the snapshot, and the pass itself. Compiled once per instruction
// set.
//
// An update is called as update(tag, streams, i), does elements i … i + lanes(tag) − 1, and returns
// zero where all that it wrote is finite and NaN elsewhere. What is the same for all elements is
// asked for each vector anew: next to memory such a branch costs nothing, and there are too many
// combinations to compile a loop for each.
#if defined(STARLING_KERNELS_UPDATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STARLING_KERNELS_UPDATE_INL_H_
#undef STARLING_KERNELS_UPDATE_INL_H_
#else
#define STARLING_KERNELS_UPDATE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "starling/kernels/bf16_inl.h"
#include "starling/kernels/update.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

template <class D>
using StreamsOf = Streams<hn::TFromD<D>>;

template <class D>
HWY_INLINE hn::Vec<D> mixed(D d, const StreamsOf<D>& streams, std::size_t i) {
  const auto from = hn::LoadU(d, streams.from + i);
  if (streams.result == nullptr) {
    return from;
  }
  const auto part = hn::Mul(hn::Set(d, streams.of_result), hn::LoadU(d, streams.result + i));
  if (!streams.rounded) {
    return hn::Add(hn::Mul(hn::Set(d, streams.of_from), from), part);
  }
  const auto taken = hn::Mul(hn::Set(d, 1 - streams.of_from), as_bf16(d, from));
  return hn::Sub(hn::Add(from, part), taken);
}

template <class D>
HWY_INLINE hn::Vec<D> gradient(D d, const StreamsOf<D>& streams, std::size_t i) {
  const auto g = hn::LoadU(d, streams.gradient + i);
  return streams.gradient_scale == 1 ? g : hn::Mul(hn::Set(d, streams.gradient_scale), g);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V decayed(D d, V g, hn::TFromD<D> decay, V x) {
  return decay == 0 ? g : hn::Add(g, hn::Mul(hn::Set(d, decay), x));
}

// a x + b y
template <class D, class V = hn::Vec<D>>
HWY_INLINE V weighted(D d, hn::TFromD<D> a, V x, hn::TFromD<D> b, V y) {
  return hn::Add(hn::Mul(hn::Set(d, a), x), hn::Mul(hn::Set(d, b), y));
}

template <class V>
HWY_INLINE V zero_if_finite(V v) {
  return hn::Sub(v, v);
}

template <class D>
HWY_INLINE hn::Vec<D> store_state(D d, hn::Vec<D> v, hn::TFromD<D>* state) {
  hn::StoreU(v, d, state);
  return zero_if_finite(v);
}

template <class D>
HWY_INLINE hn::Vec<D> store(D d, hn::Vec<D> x, const StreamsOf<D>& streams, std::size_t i) {
  hn::StoreU(x, d, streams.into + i);
  if (streams.copy != nullptr) {
    hn::StoreU(x, d, streams.copy + i);
  }
  return zero_if_finite(x);
}

// From element i on. With one lane it is the rest, with all of them as much as there is.
template <class D, class Update>
HWY_INLINE bool pass_from(D d, std::size_t& i, const StreamsOf<D>& streams, const Update& update) {
  const std::size_t lanes = hn::Lanes(d);
  auto zero = hn::Zero(d);
  for (; i + lanes <= streams.size; i += lanes) {
    zero = hn::Or(zero, update(d, streams, i));
  }
  return hn::AllFalse(d, hn::IsNaN(zero));
}

// Not inlined, for the sake of build time; takes copies, so that those of the caller never leave
// registers.
template <typename T, class Update>
HWY_NOINLINE bool pass_singly(std::size_t i, Streams<T> streams, Update update) {
  return pass_from(hn::CappedTag<T, 1>(), i, streams, update);
}

template <typename T, class Update>
HWY_INLINE bool pass(Streams<T> streams, Update update) {
  std::size_t i = 0;
  const bool finite = pass_from(hn::ScalableTag<T>(), i, streams, update);
  return pass_singly(i, streams, update) && finite;
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#endif  // guard per target
