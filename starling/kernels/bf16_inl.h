// Bf16 (wire.h) in registers, shared by the wire, by sums of what travelled and by updates that
// take back what was rounded. Compiled once per instruction set.
#if defined(STARLING_KERNELS_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STARLING_KERNELS_BF16_INL_H_
#undef STARLING_KERNELS_BF16_INL_H_
#else
#define STARLING_KERNELS_BF16_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "starling/kernels/wire.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Everywhere DF is a tag of float and Patterns the vector of as many 16-bit patterns.
template <class DF>
using Patterns = hn::Vec<hn::Rebind<std::uint16_t, DF>>;

// A float whose upper half is the Bf16.
template <class DF>
HWY_INLINE hn::Vec<DF> round_upper_half(DF df, hn::Vec<DF> v) {
  const hn::Rebind<std::uint32_t, DF> du;
  const auto bits = hn::BitCast(du, v);
  // Half a unit less one, and one more if what is kept is odd: ties go to even. A carry into the
  // exponent is right, also into infinity.
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000));
  return hn::IfThenElse(hn::IsNaN(v), hn::BitCast(df, quiet), hn::BitCast(df, rounded));
}

// The way back, exactly; a NaN is made quiet.
template <class DF>
HWY_INLINE hn::Vec<DF> widen(Bf16, DF df, Patterns<DF> v) {
  const hn::Rebind<std::uint32_t, DF> du;
  const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(du, v));
  const auto result = hn::BitCast(df, bits);
  const auto quiet = hn::BitCast(df, hn::Set(du, 0x00400000));
  return hn::Or(result, hn::IfThenElseZero(hn::IsNaN(result), quiet));
}

// Doubles as floats that round to the same pattern: 13 bits of fraction are kept, more than either
// format of the wire has, and the last of them is set if anything below it was. So few bits fit a
// float exactly wherever the narrow format is not yet zero or infinite, and no tie appears or
// vanishes.
template <class DF, class DD = hn::Rebind<double, DF>>
HWY_INLINE hn::Vec<DF> few_bits(DF df, hn::Vec<DD> v) {
  const DD dd;
  const hn::Rebind<std::uint64_t, DF> du;
  const auto below = hn::Set(du, (std::uint64_t{1} << 39) - 1);
  const auto bits = hn::BitCast(du, v);
  const auto any = hn::Add(hn::And(bits, below), below);  // carries into the last bit kept
  return hn::DemoteTo(df, hn::BitCast(dd, hn::AndNot(below, hn::Or(bits, any))));
}

// unpack(pack(v)), without the way.
template <class DF>
HWY_INLINE hn::Vec<DF> as_bf16(DF df, hn::Vec<DF> v, float /*element*/) {
  const hn::Rebind<std::uint32_t, DF> du;
  const auto upper = hn::Set(du, 0xffff0000);
  return hn::BitCast(df, hn::And(hn::BitCast(du, round_upper_half(df, v)), upper));
}
template <class DD>
HWY_INLINE hn::Vec<DD> as_bf16(DD dd, hn::Vec<DD> v, double /*element*/) {
  const hn::Rebind<float, DD> df;
  return hn::PromoteTo(dd, as_bf16(df, few_bits(df, v), 0.0f));
}
template <class D>
HWY_INLINE hn::Vec<D> as_bf16(D d, hn::Vec<D> v) {
  return as_bf16(d, v, hn::TFromD<D>());
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#endif  // guard per target
