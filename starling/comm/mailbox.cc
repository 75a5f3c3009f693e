#include "starling/comm/mailbox.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/wire.h"

namespace starling::comm {
namespace {

constexpr std::size_t kSlots = 16;

struct Slot {
  std::uint64_t size = 0;
  std::array<std::byte, kMaxPacket> bytes;
};

struct Ring {
  alignas(64) std::atomic<std::uint64_t> begin{0};  // written by the receiver
  alignas(64) std::atomic<std::uint64_t> end{0};    // written by the sender
  std::atomic<std::uint64_t> wants_room{0};         // set by the sender, cleared by the receiver
  std::array<Slot, kSlots> slots;
};

}  // namespace

// All zeroes is an empty inbox.
struct InboxLayout {
  alignas(64) std::atomic<std::uint64_t> asleep;
  alignas(64) std::array<std::atomic<std::uint64_t>, kMostSeats / 64> full;  // who has sent
  std::array<Ring, kMostSeats> rings;

  static InboxLayout& at(std::byte* memory) {
    return *std::launder(reinterpret_cast<InboxLayout*>(memory));
  }
};

std::size_t inbox_bytes() { return sizeof(InboxLayout); }

Inbox::Inbox(std::byte* memory) : layout_(InboxLayout::at(memory)) {
  check(pipe2(bell_, O_NONBLOCK | O_CLOEXEC) == 0, "pipe2: {}", std::strerror(errno));
}

Inbox::~Inbox() {
  ::close(bell_[0]);
  ::close(bell_[1]);
}

bool Inbox::take(const Receive& receive, const std::function<void(std::size_t seat)>& room) {
  bool any = false;
  for (std::size_t word = 0; word < layout_.full.size(); ++word) {
    if (layout_.full[word].load(std::memory_order_relaxed) == 0) {
      continue;
    }
    std::uint64_t senders = layout_.full[word].exchange(0);
    for (; senders != 0; senders &= senders - 1) {
      const std::size_t seat = word * 64 + static_cast<std::size_t>(std::countr_zero(senders));
      Ring& ring = layout_.rings[seat];
      std::uint64_t begin = ring.begin.load(std::memory_order_relaxed);
      while (begin != ring.end.load()) {
        const Slot& slot = ring.slots[begin % kSlots];
        receive(seat, std::span(slot.bytes).first(std::min(slot.size, slot.bytes.size())));
        ring.begin.store(++begin);
        any = true;
      }
      if (ring.wants_room.load() != 0 && ring.wants_room.exchange(0) != 0) {
        room(seat);
      }
    }
  }
  return any;
}

bool Inbox::has_mail() const {
  for (const auto& word : layout_.full) {
    if (word.load() != 0) {
      return true;
    }
  }
  return false;
}

bool Inbox::about_to_sleep() {
  layout_.asleep.store(1);
  if (has_mail()) {
    awake();
    return false;
  }
  return true;
}

void Inbox::awake() { layout_.asleep.store(0); }

void Inbox::heard() {
  std::array<char, 64> bytes;
  while (read(bell_[0], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
  }
}

void Inbox::wake() {
  if (layout_.asleep.load() != 0 && layout_.asleep.exchange(0) != 0) {
    [[maybe_unused]] const auto written = write(bell_[1], "!", 1);
  }
}

Outbox::Outbox(std::byte* memory, std::size_t seat, int bell)
    : layout_(InboxLayout::at(memory)), seat_(seat), bell_(bell) {}

Outbox::Outbox(Outbox&& other) noexcept
    : layout_(other.layout_),
      seat_(other.seat_),
      bell_(std::exchange(other.bell_, -1)),
      waiting_(std::move(other.waiting_)) {}

Outbox::~Outbox() {
  if (bell_ >= 0) {
    ::close(bell_);
  }
}

void Outbox::ring() const {
  // A full pipe has rung loudly enough.
  [[maybe_unused]] const auto written = write(bell_, "!", 1);
}

bool Outbox::push(std::span<const std::byte> packet) {
  Ring& ring = layout_.rings[seat_];
  const std::uint64_t end = ring.end.load(std::memory_order_relaxed);
  if (end - ring.begin.load() == kSlots) {
    return false;
  }
  Slot& slot = ring.slots[end % kSlots];
  slot.size = packet.size();
  std::copy(packet.begin(), packet.end(), slot.bytes.begin());
  ring.end.store(end + 1);
  layout_.full[seat_ / 64].fetch_or(std::uint64_t{1} << (seat_ % 64));
  if (layout_.asleep.load() != 0 && layout_.asleep.exchange(0) != 0) {
    this->ring();
  }
  return true;
}

void Outbox::put(std::span<const std::byte> packet) {
  if (waiting_.empty() && push(packet)) {
    return;
  }
  waiting_.emplace_back(packet.begin(), packet.end());
  flush();
}

void Outbox::flush() {
  while (!waiting_.empty()) {
    if (!push(waiting_.front())) {
      // Ask for a sign, then look once more: the receiver may just have made room.
      layout_.rings[seat_].wants_room.store(1);
      layout_.full[seat_ / 64].fetch_or(std::uint64_t{1} << (seat_ % 64));
      if (!push(waiting_.front())) {
        return;
      }
    }
    waiting_.pop_front();
  }
}

}  // namespace starling::comm
