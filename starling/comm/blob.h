// A stretch of payload. `data` may be null while `size` is not: a weightless blob, which takes its
// time on a virtual network but holds no bytes. Collectives never look inside; only the arithmetic
// object does (arithmetic.h).
#pragma once

#include <cstddef>

#include "starling/base/error.h"

namespace starling::comm {

struct ConstBlob {
  const std::byte* data = nullptr;
  std::size_t size = 0;

  ConstBlob slice(std::size_t begin, std::size_t end) const {
    check(begin <= end && end <= size, "slice {}…{} of a blob of {} bytes", begin, end, size);
    return {data == nullptr ? nullptr : data + begin, end - begin};
  }
};

struct Blob {
  std::byte* data = nullptr;
  std::size_t size = 0;

  Blob slice(std::size_t begin, std::size_t end) const {
    check(begin <= end && end <= size, "slice {}…{} of a blob of {} bytes", begin, end, size);
    return {data == nullptr ? nullptr : data + begin, end - begin};
  }
  // NOLINTNEXTLINE(google-explicit-constructor): as span<T> becomes span<const T>
  operator ConstBlob() const { return {data, size}; }
};

}  // namespace starling::comm
