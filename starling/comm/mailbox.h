// Packets between workers of a node, through the memory that they share: a ring per sender in the
// memory of the receiver. Nothing is asked of the kernel, except to wake a receiver that sleeps, by
// a byte into its pipe (the bell), which the others opened through its /proc entry.
//
// One thread on each side. A sender that dies in the middle of writing leaves nothing behind: a
// packet counts when the ring's end has moved past it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "starling/comm/blob.h"

namespace starling::comm {

inline constexpr std::size_t kMostSeats = 256;

struct InboxLayout;

// How much shared memory an inbox takes; only what is used takes room.
std::size_t inbox_bytes();

// The receiver's side.
class Inbox {
 public:
  // `memory`: inbox_bytes() zeroes.
  explicit Inbox(std::byte* memory);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // The end of the bell that others open; the end that becomes readable when it rings.
  int bell() const { return bell_[1]; }
  int file() const { return bell_[0]; }

  // Hands over every packet that is there, in order per seat; true if there was one. `room` is told
  // the seats that wait for room in their ring.
  using Receive = std::function<void(std::size_t seat, std::span<const std::byte> packet)>;
  bool take(const Receive& receive, const std::function<void(std::size_t seat)>& room);

  bool has_mail() const;
  // From true on a packet, or wake(), rings the bell; false: there is a packet already.
  bool about_to_sleep();
  void awake();
  // Ends a sleep; from any thread.
  void wake();
  // Takes what the bell has left in file(). To be called whenever that was found readable, or it
  // stays so: a bell may ring late, when the sleeper has got up by itself, and for room at any
  // time.
  void heard();

 private:
  InboxLayout& layout_;
  int bell_[2] = {-1, -1};
};

// The sender's side: one ring in the inbox of another worker.
class Outbox {
 public:
  // `bell`: opened for writing; owned from here on. `seat`: ours in that inbox.
  Outbox(std::byte* memory, std::size_t seat, int bell);
  Outbox(Outbox&& other) noexcept;
  Outbox& operator=(Outbox&&) = delete;
  ~Outbox();

  // Copied at once; waits here while the ring is full.
  void put(std::span<const std::byte> packet);
  // There is room, perhaps.
  void flush();
  void ring() const;

 private:
  bool push(std::span<const std::byte> packet);
  InboxLayout& layout_;
  std::size_t seat_;
  int bell_;
  std::deque<std::vector<std::byte>> waiting_;
};

}  // namespace starling::comm
