// The one object through which comm touches payload, and its weightless twin. Stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "starling/comm/blob.h"
#include "starling/kernels/store.h"

namespace starling::comm {

enum class Type : std::uint8_t { Float32, Float64 };
std::size_t size_of(Type type);
std::string_view name_of(Type type);

// How exactly contributions travel.
enum class Precision : std::uint8_t {
  Full,  // as they are
  Bf16,  // rounded once, to the nearest (kernels/wire.h); what is made of them is not
};
// How many times fewer bytes a contribution takes on the wire than in memory.
std::size_t shrink(Type type, Precision precision);

// Memory for the duration of a collective.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(Blob weightless) : blob_(weightless) {}
  Scratch(std::unique_ptr<std::byte[]> memory, std::size_t size)
      : memory_(std::move(memory)), blob_{memory_.get(), size} {}
  Blob blob() const { return blob_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  Blob blob_;
};

class Arithmetic {
 public:
  virtual ~Arithmetic() = default;
  // The fixed-tree sum, element by element, of sources in the order given; `into` may be one of
  // them. Requires: equal sizes, a multiple of size_of(type).
  virtual void sum(Type type, Blob into, std::span<const ConstBlob> sources) const = 0;
  // The fixed-tree sum of weights[i] * sources[i].
  virtual void mix(Type type, Blob into, std::span<const ConstBlob> sources,
                   std::span<const double> weights) const = 0;
  // The fixed-tree sum, written to all of `into`. None of them is a source.
  virtual void sum_to_all(Type type, std::span<const Blob> into, std::span<const ConstBlob> sources,
                          kernels::Store store) const = 0;
  virtual void copy(Blob into, ConstBlob from,
                    kernels::Store store = kernels::Store::Cached) const = 0;
  // What arrives of `from` if it travels as bf16.
  virtual void through_bf16(Type type, Blob into, ConstBlob from) const = 0;
  // `from` as bf16. Requires: `into` holds as many elements, in shrink() times fewer bytes.
  virtual void pack(Type type, Blob into, ConstBlob from) const = 0;
  // The fixed-tree sum of packed sources: that of what they unpack to. `into` is none of them.
  virtual void sum_packed(Type type, Blob into, std::span<const ConstBlob> sources) const = 0;
  virtual Scratch scratch(std::size_t bytes) const = 0;
};

// Real numbers, by kernels/.
class KernelArithmetic final : public Arithmetic {
 public:
  void sum(Type type, Blob into, std::span<const ConstBlob> sources) const override;
  void mix(Type type, Blob into, std::span<const ConstBlob> sources,
           std::span<const double> weights) const override;
  void sum_to_all(Type type, std::span<const Blob> into, std::span<const ConstBlob> sources,
                  kernels::Store store) const override;
  void copy(Blob into, ConstBlob from, kernels::Store store) const override;
  void through_bf16(Type type, Blob into, ConstBlob from) const override;
  void pack(Type type, Blob into, ConstBlob from) const override;
  void sum_packed(Type type, Blob into, std::span<const ConstBlob> sources) const override;
  Scratch scratch(std::size_t bytes) const override;
};

// Nothing is computed and nothing is stored; for weightless blobs.
class NullArithmetic final : public Arithmetic {
 public:
  void sum(Type, Blob, std::span<const ConstBlob>) const override {}
  void mix(Type, Blob, std::span<const ConstBlob>, std::span<const double>) const override {}
  void sum_to_all(Type, std::span<const Blob>, std::span<const ConstBlob>,
                  kernels::Store) const override {}
  void copy(Blob, ConstBlob, kernels::Store) const override {}
  void through_bf16(Type, Blob, ConstBlob) const override {}
  void pack(Type, Blob, ConstBlob) const override {}
  void sum_packed(Type, Blob, std::span<const ConstBlob>) const override {}
  Scratch scratch(std::size_t bytes) const override { return Scratch(Blob{nullptr, bytes}); }
};

}  // namespace starling::comm
