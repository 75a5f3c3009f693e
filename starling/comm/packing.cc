#include "starling/comm/packing.h"

#include "starling/base/error.h"

namespace starling::comm {

void Packer::number(std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) {
    packed_.push_back(static_cast<std::byte>(value >> shift));
  }
}

void Packer::bytes(std::span<const std::byte> bytes) {
  packed_.insert(packed_.end(), bytes.begin(), bytes.end());
}

void Packer::text(std::string_view text) { bytes(std::as_bytes(std::span(text))); }

void Packer::padded(std::string_view content, std::size_t length) {
  check(content.size() <= length, "{} bytes do not fit into {}", content.size(), length);
  text(content);
  packed_.resize(packed_.size() + length - content.size());
}

std::uint32_t Unpacker::number() {
  std::uint32_t value = 0;
  int shift = 0;
  for (const std::byte byte : bytes(4)) {
    value |= std::to_integer<std::uint32_t>(byte) << shift;
    shift += 8;
  }
  return value;
}

std::span<const std::byte> Unpacker::bytes(std::size_t count) {
  if (count > rest_.size()) {
    throw Error(ErrorCode::Mismatch, "a message of start-up is too short");
  }
  const std::span<const std::byte> taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

std::string Unpacker::text(std::size_t length) {
  const std::span<const std::byte> taken = bytes(length);
  std::string text;
  for (const std::byte byte : taken) {
    text += static_cast<char>(byte);
  }
  return text;
}

}  // namespace starling::comm
