#include "starling/comm/arithmetic.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/buffer.h"
#include "starling/kernels/copy.h"
#include "starling/kernels/mix.h"
#include "starling/kernels/sum.h"
#include "starling/kernels/sum_packed.h"
#include "starling/kernels/sum_to_all.h"
#include "starling/kernels/wire.h"

namespace starling::comm {
namespace {

template <typename T>
std::span<T> as(Blob blob) {
  return {reinterpret_cast<T*>(blob.data), blob.size / sizeof(T)};
}

template <typename T>
std::span<const T> as(ConstBlob blob) {
  return {reinterpret_cast<const T*>(blob.data), blob.size / sizeof(T)};
}

template <typename T>
std::vector<const T*> pointers(std::span<const ConstBlob> sources) {
  std::vector<const T*> result;
  result.reserve(sources.size());
  for (const ConstBlob& source : sources) {
    result.push_back(reinterpret_cast<const T*>(source.data));
  }
  return result;
}

template <typename T>
void sum_of(Blob into, std::span<const ConstBlob> sources) {
  kernels::sum(as<T>(into), pointers<T>(sources));
}

template <typename T>
void sum_to_all_of(std::span<const Blob> into, std::span<const ConstBlob> sources) {
  std::vector<T*> targets;
  for (const Blob& target : into) {
    targets.push_back(as<T>(target).data());
  }
  kernels::sum_to_all(targets, into.front().size / sizeof(T), pointers<T>(sources));
}

template <typename T>
void mix_of(Blob into, std::span<const ConstBlob> sources, std::span<const double> weights) {
  const std::vector<T> rounded(weights.begin(), weights.end());
  kernels::mix(as<T>(into), pointers<T>(sources), rounded);
}

// `fewer`: how many times fewer bytes a source takes than the result.
void check_sizes(Blob into, std::span<const ConstBlob> sources, std::size_t fewer = 1) {
  for (const ConstBlob& source : sources) {
    check(source.size * fewer == into.size && source.data != nullptr && into.data != nullptr,
          "arithmetic on {} and {} bytes", source.size, into.size);
  }
}

template <typename T>
void through_bf16_of(Blob into, ConstBlob from) {
  std::array<kernels::Bf16, 1024> wire;
  const std::span<const T> in = as<T>(from);
  const std::span<T> out = as<T>(into);
  for (std::size_t at = 0; at < in.size(); at += wire.size()) {
    const std::size_t count = std::min(wire.size(), in.size() - at);
    kernels::pack(std::span(wire).first(count), in.subspan(at, count));
    kernels::unpack(out.subspan(at, count), std::span<const kernels::Bf16>(wire).first(count));
  }
}

}  // namespace

std::size_t size_of(Type type) { return type == Type::Float64 ? 8 : 4; }

std::string_view name_of(Type type) { return type == Type::Float64 ? "float64" : "float32"; }

std::size_t shrink(Type type, Precision precision) {
  return precision == Precision::Full ? 1 : size_of(type) / sizeof(kernels::Bf16);
}

void require_buffers(std::string_view who, ConstBuffer in, Buffer out) {
  require(in.blob.size > 0, "{}: the buffer is empty", who);
  require(in.type == out.type && in.blob.size == out.blob.size,
          "{}: the input holds {} {}, the output {} {}", who, in.elements(), name_of(in.type),
          out.elements(), name_of(out.type));
  require(in.blob.size % size_of(in.type) == 0, "{}: {} bytes are not a whole number of {}", who,
          in.blob.size, name_of(in.type));
  const bool apart = in.blob.data == nullptr || out.blob.data + out.blob.size <= in.blob.data ||
                     in.blob.data + in.blob.size <= out.blob.data;
  require(apart, "{}: input and output overlap; the input must survive a failure", who);
}

void KernelArithmetic::sum(Type type, Blob into, std::span<const ConstBlob> sources) const {
  check_sizes(into, sources);
  type == Type::Float64 ? sum_of<double>(into, sources) : sum_of<float>(into, sources);
}

void KernelArithmetic::mix(Type type, Blob into, std::span<const ConstBlob> sources,
                           std::span<const double> weights) const {
  check_sizes(into, sources);
  type == Type::Float64 ? mix_of<double>(into, sources, weights)
                        : mix_of<float>(into, sources, weights);
}

void KernelArithmetic::sum_to_all(Type type, std::span<const Blob> into,
                                  std::span<const ConstBlob> sources, kernels::Store store) const {
  for (const Blob& target : into) {
    check_sizes(target, sources);
  }
  if (store == kernels::Store::Cached) {
    sum(type, into.front(), sources);
    for (const Blob& target : into.subspan(1)) {
      copy(target, into.front(), store);
    }
    return;
  }
  type == Type::Float64 ? sum_to_all_of<double>(into, sources)
                        : sum_to_all_of<float>(into, sources);
}

void KernelArithmetic::copy(Blob into, ConstBlob from, kernels::Store store) const {
  kernels::copy({into.data, into.size}, {from.data, from.size}, store);
}

void KernelArithmetic::through_bf16(Type type, Blob into, ConstBlob from) const {
  check(into.size == from.size, "{} bytes through bf16 into {}", from.size, into.size);
  type == Type::Float64 ? through_bf16_of<double>(into, from) : through_bf16_of<float>(into, from);
}

void KernelArithmetic::pack(Type type, Blob into, ConstBlob from) const {
  check(into.size * shrink(type, Precision::Bf16) == from.size, "{} bytes packed into {}",
        from.size, into.size);
  type == Type::Float64 ? kernels::pack(as<kernels::Bf16>(into), as<double>(from))
                        : kernels::pack(as<kernels::Bf16>(into), as<float>(from));
}

void KernelArithmetic::sum_packed(Type type, Blob into, std::span<const ConstBlob> sources) const {
  check_sizes(into, sources, shrink(type, Precision::Bf16));
  const std::vector<const kernels::Bf16*> packed = pointers<kernels::Bf16>(sources);
  type == Type::Float64 ? kernels::sum_packed(as<double>(into), packed)
                        : kernels::sum_packed(as<float>(into), packed);
}

Scratch KernelArithmetic::scratch(std::size_t bytes) const {
  return {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
}

}  // namespace starling::comm
