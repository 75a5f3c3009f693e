// A blob with the type of its elements: what collectives take and give.
#pragma once

#include <span>

#include "starling/comm/arithmetic.h"
#include "starling/comm/blob.h"

namespace starling::comm {

struct ConstBuffer {
  Type type = Type::Float32;
  ConstBlob blob;
  std::size_t elements() const { return blob.size / size_of(type); }
};

struct Buffer {
  Type type = Type::Float32;
  Blob blob;
  std::size_t elements() const { return blob.size / size_of(type); }
};

template <typename T>
inline constexpr Type kTypeOf = Type::Float32;
template <>
inline constexpr Type kTypeOf<double> = Type::Float64;

template <typename T>
ConstBuffer input(std::span<T> values) {
  const auto bytes = std::as_bytes(values);
  return {kTypeOf<std::remove_const_t<T>>, {bytes.data(), bytes.size()}};
}

template <typename T>
Buffer output(std::span<T> values) {
  const auto bytes = std::as_writable_bytes(values);
  return {kTypeOf<T>, {bytes.data(), bytes.size()}};
}

// Throws Error{Input} unless `in` is not empty and `out` is of the same type and length, elsewhere.
// `who` names the operation.
void require_buffers(std::string_view who, ConstBuffer in, Buffer out);

}  // namespace starling::comm
