#include "starling/kernels/sum_packed.h"

#include <cstddef>
#include <cstdint>

#include "starling/base/error.h"
#include "starling/kernels/store.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starling/kernels/sum_packed.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "starling/kernels/bf16_inl.h"
#include "starling/kernels/tree_inl.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

template <typename T>
struct PackedSources {
  struct Term {
    const std::uint16_t* from;
    template <class D>
    HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
      const hn::Rebind<float, D> df;
      const auto v = widen(Bf16(), df, hn::LoadU(hn::Rebind<std::uint16_t, D>(), from + i));
      if constexpr (sizeof(T) == sizeof(float)) {
        return v;
      } else {
        return hn::PromoteTo(d, v);
      }
    }
  };

  std::span<const Bf16* const> sources;
  std::size_t count() const { return sources.size(); }
  Term term(std::size_t j, std::size_t begin) const {
    return {reinterpret_cast<const std::uint16_t*>(sources[j]) + begin};
  }
};

struct OneNan {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return one_nan(d, v);
  }
};

void sum_packed_float(std::span<float> into, std::span<const Bf16* const> sources) {
  reduce(into, PackedSources<float>{sources}, OneNan{}, Store::Cached);
}

void sum_packed_double(std::span<double> into, std::span<const Bf16* const> sources) {
  reduce(into, PackedSources<double>{sources}, OneNan{}, Store::Cached);
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starling::kernels {

HWY_EXPORT(sum_packed_float);
HWY_EXPORT(sum_packed_double);

namespace {

// A NaN of a single source keeps its payload.
template <typename T, typename Kernel>
void run(Kernel kernel, std::span<T> into, std::span<const Bf16* const> sources) {
  check(!sources.empty(), "a sum of no sources");
  if (sources.size() == 1) {
    unpack(into, std::span(sources[0], into.size()));
  } else {
    kernel(into, sources);
  }
}

}  // namespace

void sum_packed(std::span<float> into, std::span<const Bf16* const> sources) {
  run(HWY_DYNAMIC_DISPATCH(sum_packed_float), into, sources);
}

void sum_packed(std::span<double> into, std::span<const Bf16* const> sources) {
  run(HWY_DYNAMIC_DISPATCH(sum_packed_double), into, sources);
}

}  // namespace starling::kernels
#endif  // HWY_ONCE
