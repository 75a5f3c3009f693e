// What memberships (view.h) say to each other. A fixed head and two bits per worker of the job, so
// that it fits into a control message, with room for what its carrier puts before it, at up to
// kMostInView workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "starling/base/units.h"
#include "starling/comm/endpoint.h"

namespace starling::comm {

// The number of a round; that of step t is t.
using Version = std::uint64_t;
using Epoch = std::uint32_t;

// What a worker knows of another. In a view it only ever rises: what two know together is the
// larger of the two.
enum class Standing : std::uint8_t {
  Outside,  // not in the view
  Alive,
  Lost,
  Left,  // in good order: it said so itself
};
using Standings = std::vector<Standing>;  // by rank, of all workers of the job

enum class ViewKind : std::uint8_t {
  State,     // what the sender knows of the workers in its view
  Excluded,  // the receiver is heard no more
};

struct ViewMessage {
  ViewKind kind = ViewKind::State;
  Epoch epoch = 0;     // of the sender's view: all that is not Outside
  Version first = 0;   // that view holds from here on
  Version next = 0;    // the sender's own next version
  Version passed = 0;  // the largest next version of those who have Left in this epoch
  Standings standings;
};

inline constexpr std::size_t kMostInView = 16'000;

std::vector<std::byte> pack(const ViewMessage& message);
// Requires: packed by a worker of the same job, of `workers` workers.
ViewMessage unpack_view(std::span<const std::byte> packed, std::size_t workers);

}  // namespace starling::comm
