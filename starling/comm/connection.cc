#include "starling/comm/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

constexpr std::string_view kFrameWord = "strl";
constexpr std::size_t kHeaderLength = 12;
// Memory grows with what has come, not with what was announced.
constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Bytestring pack_frame(FrameKind kind, std::span<const std::byte> bytes) {
  check(bytes.size() <= std::numeric_limits<std::uint32_t>::max(), "a frame of {} bytes",
        bytes.size());
  Packer packer;
  packer.text(kFrameWord);
  packer.number(static_cast<std::uint32_t>(kind));
  packer.number(static_cast<std::uint32_t>(bytes.size()));
  packer.bytes(bytes);
  return packer.packed();
}

void Connection::receive(std::size_t count) {
  std::array<std::byte, kReadAtOnce> chunk;
  const ssize_t got = recv(socket_.descriptor(), chunk.data(), std::min(count, chunk.size()), 0);
  if (got > 0) {
    incoming_.insert(incoming_.end(), chunk.begin(), chunk.begin() + got);
  } else if (got == 0 || !would_block()) {
    ended_ = true;
  }
}

std::optional<Bytestring> Connection::read(std::size_t count) {
  while (incoming_.size() < count && !ended_) {
    const std::size_t before = incoming_.size();
    receive(count - before);
    if (incoming_.size() == before) {
      return std::nullopt;
    }
  }
  return incoming_.size() < count ? std::nullopt
                                  : std::optional(std::exchange(incoming_, Bytestring()));
}

std::optional<Frame> Connection::read_frame(std::size_t limit) {
  if (!header_) {
    const std::optional<Bytestring> bytes = read(kHeaderLength);
    if (!bytes) {
      return std::nullopt;
    }
    Unpacker unpacker(*bytes);
    const bool frame = unpacker.text(kFrameWord.size()) == kFrameWord;
    const auto kind = static_cast<FrameKind>(unpacker.number());
    const std::size_t length = unpacker.number();
    if (!frame || length > limit) {
      throw Error(ErrorCode::Mismatch, "what came is no message of Starling");
    }
    header_ = Header{.kind = kind, .length = length};
  }
  std::optional<Bytestring> bytes = read(header_->length);
  if (!bytes) {
    return std::nullopt;
  }
  const Header header = *std::exchange(header_, std::nullopt);
  return Frame{.kind = header.kind, .bytes = std::move(*bytes)};
}

std::optional<std::size_t> Connection::write(std::span<const std::byte> bytes) {
  const ssize_t sent = send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) {
    return static_cast<std::size_t>(sent);
  }
  return would_block() ? std::optional<std::size_t>(0) : std::nullopt;
}

bool Connection::leave() {
  shutdown(socket_.descriptor(), SHUT_WR);
  incoming_.clear();
  receive(kReadAtOnce);
  return !ended_;
}

}  // namespace starling::comm
