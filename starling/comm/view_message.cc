#include "starling/comm/view_message.h"

#include <cstring>
#include <type_traits>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

struct Head {
  ViewKind kind = ViewKind::State;
  std::uint8_t reserved[3] = {};
  Epoch epoch = 0;
  Version first = 0;
  Version next = 0;
  Version passed = 0;
};
static_assert(std::is_trivially_copyable_v<Head> && sizeof(Head) == 32);
static_assert(sizeof(Head) + kMostInView / 4 + 64 <= kMaxControl, "64 bytes for the carrier");

std::size_t size_of(std::size_t workers) { return sizeof(Head) + (workers + 3) / 4; }

}  // namespace

std::vector<std::byte> pack(const ViewMessage& message) {
  std::vector<std::byte> packed(size_of(message.standings.size()));
  const Head head{.kind = message.kind,
                  .epoch = message.epoch,
                  .first = message.first,
                  .next = message.next,
                  .passed = message.passed};
  std::memcpy(packed.data(), &head, sizeof head);
  for (std::size_t r = 0; r < message.standings.size(); ++r) {
    packed[sizeof(Head) + r / 4] |= static_cast<std::byte>(message.standings[r]) << (r % 4 * 2);
  }
  return packed;
}

ViewMessage unpack_view(std::span<const std::byte> packed, std::size_t workers) {
  check(packed.size() == size_of(workers), "{} bytes about the view of {} workers", packed.size(),
        workers);
  Head head;
  std::memcpy(&head, packed.data(), sizeof head);
  ViewMessage message{.kind = head.kind,
                      .epoch = head.epoch,
                      .first = head.first,
                      .next = head.next,
                      .passed = head.passed,
                      .standings = Standings(workers)};
  for (std::size_t r = 0; r < workers; ++r) {
    const std::byte four = packed[sizeof(Head) + r / 4];
    message.standings[r] = static_cast<Standing>((four >> (r % 4 * 2)) & std::byte{3});
  }
  return message;
}

}  // namespace starling::comm
