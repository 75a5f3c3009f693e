#include "starling/kernels/wire.h"

#include <cstddef>

#include "starling/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starling/kernels/wire.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "starling/kernels/bf16_inl.h"
#include "starling/kernels/fill_inl.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

// Instruction sets that convert binary16 themselves, to the bits that the standard asks for.
#undef STARLING_HAS_FP16
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
#define STARLING_HAS_FP16 1
#else
#define STARLING_HAS_FP16 0
#endif

// narrow: floats to patterns of the wire.
template <class DF>
HWY_INLINE Patterns<DF> narrow(Bf16, DF df, hn::Vec<DF> v) {
  const hn::Rebind<std::uint32_t, DF> du;
  const hn::Rebind<std::uint16_t, DF> du16;
  return hn::TruncateTo(du16, hn::ShiftRight<16>(hn::BitCast(du, round_upper_half(df, v))));
}

template <class DF>
HWY_INLINE Patterns<DF> narrow(Fp16, DF df, hn::Vec<DF> v) {
  const hn::Rebind<std::uint16_t, DF> du16;
#if STARLING_HAS_FP16
  (void)df;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::BitCast(du16, hn::DemoteTo(dh, v));
#else
  const hn::Rebind<std::uint32_t, DF> du;
  const hn::Rebind<std::int32_t, DF> di;  // compares cheaper than unsigned
  const auto bits = hn::BitCast(du, v);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffff));
  const auto kept = hn::ShiftRight<13>(magnitude);
  // As above; 112 is the difference of the exponents' biases.
  const auto odd = hn::And(kept, hn::Set(du, 1));
  const auto rounded =
      hn::ShiftRight<13>(hn::Add(magnitude, hn::Add(odd, hn::Set(du, 0xfffu - (112u << 23)))));
  auto result = hn::Min(hn::BitCast(di, rounded), hn::Set(di, 0x7c00));
  // Below 2^-14: the last place of 0.5 is worth the smallest subnormal, so adding 0.5 rounds as the
  // narrow format does and leaves the pattern in the low bits.
  const auto half = hn::Set(df, 0.5f);
  const auto sum = hn::BitCast(di, hn::Add(hn::BitCast(df, magnitude), half));
  const auto is_small = hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, 113 << 23));
  result = hn::IfThenElse(is_small, hn::Sub(sum, hn::BitCast(di, half)), result);
  const auto quiet = hn::Or(hn::And(kept, hn::Set(du, 0x3ff)), hn::Set(du, 0x7e00));
  const auto is_nan = hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, 0x7f800000));
  result = hn::IfThenElse(is_nan, hn::BitCast(di, quiet), result);
  const auto sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
  return hn::TruncateTo(du16, hn::Or(hn::BitCast(du, result), sign));
#endif
}

#if HWY_TARGET != HWY_SCALAR
// The same for two vectors of floats at a time.
template <class D16, class DF = hn::Repartition<float, D16>>
HWY_INLINE hn::Vec<D16> narrow_two(Bf16, D16 d16, hn::Vec<DF> first, hn::Vec<DF> second) {
  const DF df;
  return hn::ConcatOdd(d16, hn::BitCast(d16, round_upper_half(df, second)),
                       hn::BitCast(d16, round_upper_half(df, first)));
}

template <class D16, class DF = hn::Repartition<float, D16>>
HWY_INLINE hn::Vec<D16> narrow_two(Fp16, D16 d16, hn::Vec<DF> first, hn::Vec<DF> second) {
  const DF df;
  return hn::Combine(d16, narrow(Fp16(), df, second), narrow(Fp16(), df, first));
}
#endif

// widen: the way back, exactly; that of Bf16 is in bf16_inl.h.
template <class DF>
HWY_INLINE hn::Vec<DF> widen(Fp16, DF df, Patterns<DF> v) {
#if STARLING_HAS_FP16
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(df, hn::BitCast(dh, v));
#else
  const hn::Rebind<std::uint32_t, DF> du;
  const hn::Rebind<std::int32_t, DF> di;
  const auto wire = hn::PromoteTo(du, v);
  const auto magnitude = hn::And(wire, hn::Set(du, 0x7fff));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(shifted, hn::Set(du, 112u << 23));
  // With the implied one that a subnormal lacks, and then without it: exact.
  const auto one = hn::Set(du, 113u << 23);
  const auto subnormal = hn::Sub(hn::BitCast(df, hn::Add(shifted, one)), hn::BitCast(df, one));
  const auto size = hn::BitCast(di, magnitude);
  const auto is_nan = hn::Gt(size, hn::Set(di, 0x7c00));
  const auto quiet = hn::IfThenElseZero(is_nan, hn::Set(di, 0x00400000));
  const auto special = hn::Or(hn::Or(shifted, hn::Set(du, 0x7f800000)), hn::BitCast(du, quiet));
  const auto is_special = hn::Gt(size, hn::Set(di, 0x7bff));
  const auto is_small = hn::Lt(size, hn::Set(di, 0x0400));
  auto result = hn::IfThenElse(is_special, hn::BitCast(di, special), hn::BitCast(di, normal));
  result = hn::IfThenElse(is_small, hn::BitCast(di, subnormal), result);
  const auto sign = hn::ShiftLeft<16>(hn::Xor(wire, magnitude));
  return hn::BitCast(df, hn::Or(hn::BitCast(du, result), sign));
#endif
}

template <class DF>
HWY_INLINE hn::Vec<DF> load(DF df, const float* from) {
  return hn::LoadU(df, from);
}

template <class DF>
HWY_INLINE hn::Vec<DF> load_few(DF df, const double* from) {
  return few_bits(df, hn::LoadU(hn::Rebind<double, DF>(), from));
}

template <class DF>
HWY_INLINE hn::Vec<DF> load(DF df, const double* from) {
#if HWY_TARGET == HWY_SCALAR
  return load_few(df, from);
#else
  if constexpr (hn::MaxLanes(DF()) == 1) {
    return load_few(df, from);
  } else {  // a vector of floats is two of doubles
    const hn::Half<DF> dh;
    const auto lower = load_few(dh, from);
    return hn::Combine(df, load_few(dh, from + hn::Lanes(dh)), lower);
  }
#endif
}

// Asks for the lines of `lanes` elements well ahead. There is so much arithmetic per line that the
// reorder window alone does not keep memory busy (measured: a fifth faster from memory).
template <typename T>
HWY_INLINE void prefetch(const T* from, std::size_t lanes) {
  constexpr std::size_t kAhead = 1024;  // bytes
  constexpr std::size_t kLine = 64;
  const auto* bytes = reinterpret_cast<const std::byte*>(from);
  for (std::size_t line = 0; line < lanes * sizeof(T); line += kLine) {
    hwy::Prefetch(bytes + kAhead + line);
  }
}

template <typename T, typename Wire>
struct Pack {
  const T* from;

  HWY_INLINE auto operator()(hn::CappedTag<std::uint16_t, 1>, std::size_t i) const {
    const hn::CappedTag<float, 1> df;
    return narrow(Wire(), df, load(df, from + i));
  }

#if HWY_TARGET != HWY_SCALAR
  HWY_INLINE auto operator()(hn::ScalableTag<std::uint16_t> d16, std::size_t i) const {
    const hn::ScalableTag<float> df;
    prefetch(from + i, hn::Lanes(d16));
    return narrow_two(Wire(), d16, load(df, from + i), load(df, from + i + hn::Lanes(df)));
  }
#endif
};

template <typename T, typename Wire>
struct Unpack {
  const std::uint16_t* from;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    const hn::Rebind<float, D> df;
    const auto v = widen(Wire(), df, hn::LoadU(hn::Rebind<std::uint16_t, D>(), from + i));
    if constexpr (sizeof(T) == sizeof(float)) {
      return v;
    } else {
      return hn::PromoteTo(d, v);
    }
  }
};

template <typename T, typename Wire>
HWY_INLINE void pack_all(Wire* into, const T* from, std::size_t size) {
  const hn::ScalableTag<std::uint16_t> d16;
  fill(d16, reinterpret_cast<std::uint16_t*>(into), size, Pack<T, Wire>{from});
}

template <typename T, typename Wire>
HWY_INLINE void unpack_all(T* into, const Wire* from, std::size_t size) {
  const auto* bits = reinterpret_cast<const std::uint16_t*>(from);
  fill(hn::ScalableTag<T>(), into, size, Unpack<T, Wire>{bits});
}

void pack_bf16_float(Bf16* into, const float* from, std::size_t size) {
  pack_all(into, from, size);
}
void pack_bf16_double(Bf16* into, const double* from, std::size_t size) {
  pack_all(into, from, size);
}
void pack_fp16_float(Fp16* into, const float* from, std::size_t size) {
  pack_all(into, from, size);
}
void pack_fp16_double(Fp16* into, const double* from, std::size_t size) {
  pack_all(into, from, size);
}
void unpack_bf16_float(float* into, const Bf16* from, std::size_t size) {
  unpack_all(into, from, size);
}
void unpack_bf16_double(double* into, const Bf16* from, std::size_t size) {
  unpack_all(into, from, size);
}
void unpack_fp16_float(float* into, const Fp16* from, std::size_t size) {
  unpack_all(into, from, size);
}
void unpack_fp16_double(double* into, const Fp16* from, std::size_t size) {
  unpack_all(into, from, size);
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starling::kernels {

HWY_EXPORT(pack_bf16_float);
HWY_EXPORT(pack_bf16_double);
HWY_EXPORT(pack_fp16_float);
HWY_EXPORT(pack_fp16_double);
HWY_EXPORT(unpack_bf16_float);
HWY_EXPORT(unpack_bf16_double);
HWY_EXPORT(unpack_fp16_float);
HWY_EXPORT(unpack_fp16_double);

namespace {

template <typename To, typename From>
void run(void (*kernel)(To*, const From*, std::size_t), std::span<To> into,
         std::span<const From> from) {
  check(into.size() == from.size(), "{} elements converted into {}", from.size(), into.size());
  kernel(into.data(), from.data(), into.size());
}

}  // namespace

void pack(std::span<Bf16> into, std::span<const float> from) {
  run(HWY_DYNAMIC_DISPATCH(pack_bf16_float), into, from);
}
void pack(std::span<Bf16> into, std::span<const double> from) {
  run(HWY_DYNAMIC_DISPATCH(pack_bf16_double), into, from);
}
void pack(std::span<Fp16> into, std::span<const float> from) {
  run(HWY_DYNAMIC_DISPATCH(pack_fp16_float), into, from);
}
void pack(std::span<Fp16> into, std::span<const double> from) {
  run(HWY_DYNAMIC_DISPATCH(pack_fp16_double), into, from);
}
void unpack(std::span<float> into, std::span<const Bf16> from) {
  run(HWY_DYNAMIC_DISPATCH(unpack_bf16_float), into, from);
}
void unpack(std::span<double> into, std::span<const Bf16> from) {
  run(HWY_DYNAMIC_DISPATCH(unpack_bf16_double), into, from);
}
void unpack(std::span<float> into, std::span<const Fp16> from) {
  run(HWY_DYNAMIC_DISPATCH(unpack_fp16_float), into, from);
}
void unpack(std::span<double> into, std::span<const Fp16> from) {
  run(HWY_DYNAMIC_DISPATCH(unpack_fp16_double), into, from);
}

}  // namespace starling::kernels
#endif  // HWY_ONCE
