#include "starling/kernels/wire.h"

#include <bit>
#include <cstddef>

#include "starling/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starling/kernels/wire.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "starling/kernels/fill_inl.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

template <typename T>
struct Layout;
template <>
struct Layout<float> {
  using Bits = std::uint32_t;
  static constexpr int kFraction = 23;
  static constexpr int kBias = 127;
};
template <>
struct Layout<double> {
  using Bits = std::uint64_t;
  static constexpr int kFraction = 52;
  static constexpr int kBias = 1023;
};
template <>
struct Layout<Bf16> {
  static constexpr int kFraction = 7;
  static constexpr int kBias = 127;
};
template <>
struct Layout<Fp16> {
  static constexpr int kFraction = 10;
  static constexpr int kBias = 15;
};

// The numbers by which a wide T and a narrow Wire differ, as bit patterns in the width of T.
template <typename T, typename Wire>
struct Between {
  using Bits = typename Layout<T>::Bits;
  using Signed = std::make_signed_t<Bits>;
  static constexpr int kSignShift = static_cast<int>(8 * sizeof(T)) - 16;
  static constexpr int kFraction = Layout<T>::kFraction;
  static constexpr int kDropped = kFraction - Layout<Wire>::kFraction;
  static constexpr bool kSameExponents = Layout<T>::kBias == Layout<Wire>::kBias;

  static constexpr Bits exponent(int biased) { return static_cast<Bits>(biased) << kFraction; }
  static constexpr Bits kMagnitude = ~Bits{0} >> 1;
  static constexpr Bits kInfinity = exponent(2 * Layout<T>::kBias + 1);
  // Moves an exponent of T to one of Wire, modulo the width.
  static constexpr Bits kRebias = exponent(Layout<T>::kBias - Layout<Wire>::kBias);
  // The smallest normal number of Wire, in T.
  static constexpr Bits kNormal = kRebias + exponent(1);
  // A number of T whose last place is worth Wire's smallest subnormal: adding it to anything
  // smaller rounds as Wire does, and leaves the subnormal's fraction in the low bits.
  static constexpr Bits kRounder = kNormal + exponent(kDropped);

  static constexpr Bits kWireFraction = (Bits{1} << Layout<Wire>::kFraction) - 1;
  static constexpr Bits kWireInfinity = 0x7fff & ~kWireFraction;
  static constexpr Bits kWireQuiet = kWireInfinity | (kWireFraction + 1) >> 1;
  static constexpr Bits kWireNormal = kWireFraction + 1;
};

template <typename T, typename Wire>
struct Pack {
  using B = Between<T, Wire>;
  const T* from;

  template <class D16>
  HWY_INLINE hn::Vec<D16> operator()(D16 d16, std::size_t i) const {
    const hn::Rebind<T, D16> dt;
    const hn::Rebind<typename B::Bits, D16> du;
    const hn::Rebind<typename B::Signed, D16> di;  // compares cheaper than unsigned
    const auto bits = hn::BitCast(du, hn::LoadU(dt, from + i));
    const auto magnitude = hn::And(bits, hn::Set(du, B::kMagnitude));
    const auto kept = hn::ShiftRight<B::kDropped>(magnitude);

    // Half a unit less one, and one more if what is kept is odd: ties go to even. A carry into the
    // exponent is right, also into infinity.
    constexpr auto kHalf = (typename B::Bits{1} << (B::kDropped - 1)) - 1;
    const auto odd = hn::And(kept, hn::Set(du, 1));
    const auto rounded = hn::ShiftRight<B::kDropped>(
        hn::Add(magnitude, hn::Add(odd, hn::Set(du, kHalf - B::kRebias))));
    auto result = hn::BitCast(di, rounded);
    if constexpr (!B::kSameExponents) {
      result = hn::Min(result, hn::BitCast(di, hn::Set(du, B::kWireInfinity)));
      const auto rounder = hn::Set(du, B::kRounder);
      const auto sum = hn::Add(hn::BitCast(dt, magnitude), hn::BitCast(dt, rounder));
      const auto subnormal = hn::Sub(hn::BitCast(du, sum), rounder);
      const auto small =
          hn::Lt(hn::BitCast(di, magnitude), hn::BitCast(di, hn::Set(du, B::kNormal)));
      result = hn::IfThenElse(small, hn::BitCast(di, subnormal), result);
    }
    const auto payload = hn::And(kept, hn::Set(du, B::kWireFraction));
    const auto quiet = hn::Or(payload, hn::Set(du, B::kWireQuiet));
    const auto is_nan =
        hn::Gt(hn::BitCast(di, magnitude), hn::BitCast(di, hn::Set(du, B::kInfinity)));
    result = hn::IfThenElse(is_nan, hn::BitCast(di, quiet), result);
    const auto sign = hn::ShiftRight<B::kSignShift>(hn::AndNot(hn::Set(du, B::kMagnitude), bits));
    return hn::TruncateTo(d16, hn::Or(hn::BitCast(du, result), sign));
  }
};

template <class D, class D16>
HWY_INLINE hn::Vec<D> widen(D du, hn::Vec<D16> v) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::PromoteTo(du, v);
  } else {
    return hn::PromoteTo(du, hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), v));
  }
}

template <typename T, typename Wire>
struct Unpack {
  using B = Between<T, Wire>;
  const std::uint16_t* from;

  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    using D16 = hn::Rebind<std::uint16_t, D>;
    const hn::Rebind<typename B::Bits, D> du;
    const hn::Rebind<typename B::Signed, D> di;
    const auto wire = widen<decltype(du), D16>(du, hn::LoadU(D16(), from + i));
    if constexpr (B::kSameExponents) {
      return hn::BitCast(d, hn::ShiftLeft<B::kDropped>(wire));
    } else {
      const auto magnitude = hn::And(wire, hn::Set(du, 0x7fff));
      const auto sign = hn::ShiftLeft<B::kSignShift>(hn::Xor(wire, magnitude));
      const auto fraction = hn::ShiftLeft<B::kDropped>(magnitude);
      const auto normal = hn::Add(fraction, hn::Set(du, B::kRebias));
      // With the implied one that a subnormal lacks, and then without it: exact.
      const auto one = hn::Set(du, B::kNormal);
      const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(fraction, one)), hn::BitCast(d, one));
      const auto special = hn::Or(fraction, hn::Set(du, B::kInfinity));
      const auto size = hn::BitCast(di, magnitude);
      const auto is_small = hn::Lt(size, hn::BitCast(di, hn::Set(du, B::kWireNormal)));
      const auto is_special = hn::Gt(size, hn::BitCast(di, hn::Set(du, B::kWireInfinity - 1)));
      auto result = hn::IfThenElse(is_special, hn::BitCast(di, special), hn::BitCast(di, normal));
      result = hn::IfThenElse(is_small, hn::BitCast(di, subnormal), result);
      return hn::BitCast(d, hn::Or(hn::BitCast(du, result), sign));
    }
  }
};

template <typename T, typename Wire>
HWY_INLINE void pack_all(Wire* into, const T* from, std::size_t size) {
  const hn::Rebind<std::uint16_t, hn::ScalableTag<T>> d16;
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
