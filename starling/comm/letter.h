// The control messages of collectives. Fixed layouts, copied as they are: workers of one job run
// the same protocol on the same kind of machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "starling/comm/arithmetic.h"
#include "starling/comm/endpoint.h"

namespace starling::comm {

enum class Kind : std::uint8_t {
  Barrier,
  Broadcast,
  AllReduce,
  NeighbourExchange,
  PushSum,
  Gather
};
std::string_view name_of(Kind kind);

// What all workers of an operation must agree on.
struct Signature {
  std::uint64_t elements = 0;
  std::uint64_t members = 0;  // hash of the group in order and the root; 0 where groups differ
  std::uint32_t chunk = 0;
  Kind kind = Kind::Barrier;
  Type type = Type::Float32;
  std::uint8_t algorithm = 0;
  Precision precision = Precision::Full;
  friend bool operator==(const Signature&, const Signature&) = default;
};

enum class Letter : std::uint32_t {
  Data,    // payload small enough to travel here
  Hello,   // "I am in", ahead of bulk data, so that a mismatch is found
  Abort,   // the operation failed: an ErrorCode and a text follow
  Query,   // "have you started this?"
  Answer,  // slot: 1 if it has been started
  Ack,     // acknowledges Data and Hello: pairs of (operation, count) follow
  Guest,   // for what lives above collectives; operation: its series, slot: its own kind
};

struct Header {
  std::uint64_t operation = 0;
  Signature signature;
  Letter letter = Letter::Data;
  std::uint32_t slot = 0;
};
static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) == 40);

// The largest payload that travels in a control message.
inline constexpr std::size_t kSmall = kMaxControl - sizeof(Header);

struct AckEntry {
  std::uint64_t operation = 0;
  std::uint64_t count = 0;
};

}  // namespace starling::comm
