// A connection between worker 0 and another while they meet: reads exactly what is asked for, never
// blocks, and carries frames.
//
// A frame is 12 bytes of header (the word "strl", its kind and its length as numbers of packing.h)
// and its bytes. Every version of the protocol keeps this form for Refused, so that workers of
// different versions understand why they cannot meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "starling/comm/packing.h"
#include "starling/comm/socket.h"

namespace starling::comm {

enum class FrameKind : std::uint32_t {
  Refused = 1,  // worker 0 to a stranger: why, as text
  Welcome = 2,  // worker 0 to all, when all have come: the secret
  Failed = 3,   // worker 0 to all: an ErrorCode and a text, to be thrown
  Brought = 4,  // to worker 0: what a worker brings to an exchange
  Table = 5,    // worker 0 to all: for every rank the length and bytes of what it brought
};

struct Frame {
  FrameKind kind;
  Bytestring bytes;
};

// Requires: less than 4 GiB.
Bytestring pack_frame(FrameKind kind, std::span<const std::byte> bytes);

class Connection {
 public:
  explicit Connection(Socket socket) : socket_(std::move(socket)) {}

  const Socket& socket() const { return socket_; }
  // The other side will send nothing more, and what it sent has been read.
  bool ended() const { return ended_; }

  // The next `count` bytes once all of them are there.
  std::optional<Bytestring> read(std::size_t count);
  // The next frame once it is there. Throws Error{Mismatch} if what comes is no frame, or one of
  // more than `limit` bytes. Not to be mixed with read() before the frame is complete.
  std::optional<Frame> read_frame(std::size_t limit);
  // How many of the bytes were taken; nothing if none ever will be.
  std::optional<std::size_t> write(std::span<const std::byte> bytes);
  // Says that nothing more will be written, and drops what has come; false when the other side has
  // left as well.
  bool leave();

 private:
  struct Header {
    FrameKind kind;
    std::size_t length;
  };

  // Reads up to `count` bytes more.
  void receive(std::size_t count);

  Socket socket_;
  Bytestring incoming_;
  std::optional<Header> header_;  // of the frame under way
  bool ended_ = false;
};

}  // namespace starling::comm
