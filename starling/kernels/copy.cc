#include "starling/kernels/copy.h"

#include <cstdint>
#include <cstring>

#include "starling/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starling/kernels/copy.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "starling/kernels/fill_inl.h"

HWY_BEFORE_NAMESPACE();
namespace starling::kernels {
namespace HWY_NAMESPACE {

struct Same {
  const std::uint8_t* from;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    return hn::LoadU(d, from + i);
  }
};

void stream_bytes(std::uint8_t* into, const std::uint8_t* from, std::size_t size) {
  stream(hn::ScalableTag<std::uint8_t>(), into, size, Same{from});
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace starling::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starling::kernels {

HWY_EXPORT(stream_bytes);

void copy(std::span<std::byte> into, std::span<const std::byte> from, Store store) {
  check(into.size() == from.size(), "copy of {} bytes into {}", from.size(), into.size());
  if (into.empty() || into.data() == from.data()) {
    return;
  }
  if (store == Store::Streaming) {
    HWY_DYNAMIC_DISPATCH(stream_bytes)
    (reinterpret_cast<std::uint8_t*>(into.data()),
     reinterpret_cast<const std::uint8_t*>(from.data()), into.size());
  } else {
    std::memcpy(into.data(), from.data(), into.size());
  }
}

}  // namespace starling::kernels
#endif  // HWY_ONCE
