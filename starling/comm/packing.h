// Numbers and bytes of the few messages of start-up, packed one after the other; a number has 4
// bytes, the least significant first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace starling::comm {

using Bytestring = std::vector<std::byte>;

class Packer {
 public:
  void number(std::uint32_t value);
  void bytes(std::span<const std::byte> bytes);
  void text(std::string_view text);
  // `length` bytes: the text and zeroes. Requires: text.size() <= length.
  void padded(std::string_view text, std::size_t length);

  const Bytestring& packed() const { return packed_; }

 private:
  Bytestring packed_;
};

// Reads what a Packer wrote. Borrows the bytes. Throws Error{Mismatch} if there are fewer than
// asked for.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> packed) : rest_(packed) {}

  std::uint32_t number();
  std::span<const std::byte> bytes(std::size_t count);
  std::string text(std::size_t length);
  std::string all_text() { return text(rest_.size()); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace starling::comm
