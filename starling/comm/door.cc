#include "starling/comm/door.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/introduction.h"

namespace starling::comm {
namespace {

constexpr auto kTimeToIntroduce = std::chrono::seconds(10);
constexpr auto kTimeToLeave = std::chrono::seconds(1);
// At a time; the others wait in the kernel's queue.
constexpr std::size_t kMostVisitors = 64;

WallTime now() { return std::chrono::steady_clock::now(); }

Socket listener_of(const Job& job) {
  const std::optional<Address> address = parse_address(job.meet);
  require(address.has_value(), "'{}' is neither unix:@NAME nor tcp:HOST:PORT", job.meet);
  return listen_at(*address, job.meet);
}

}  // namespace

Door::Door(const Job& job) : job_(job), listener_(listener_of(job)) {}

void Door::watch(std::vector<pollfd>& polls) const {
  if (visitors_.size() < kMostVisitors) {
    polls.push_back({.fd = listener_.descriptor(), .events = POLLIN, .revents = 0});
  }
  for (const Visitor& visitor : visitors_) {
    polls.push_back(
        {.fd = visitor.connection.socket().descriptor(), .events = POLLIN, .revents = 0});
  }
}

WallTime Door::until() const {
  WallTime first = WallTime::max();
  for (const Visitor& visitor : visitors_) {
    first = std::min(first, visitor.until);
  }
  return first;
}

void Door::admit() {
  while (visitors_.size() < kMostVisitors) {
    std::optional<Socket> socket = accept_at(listener_);
    if (!socket) {
      return;
    }
    visitors_.push_back(
        {.connection = Connection(std::move(*socket)), .until = now() + kTimeToIntroduce});
  }
}

Door::Verdict Door::turn_away(Visitor& visitor, const std::string& reason) const {
  const Bytestring frame =
      pack_frame(FrameKind::Refused, std::as_bytes(std::span<const char>(reason)));
  // It fits into the empty buffer of a new connection.
  visitor.connection.write(frame);
  visitor.leaving = true;
  visitor.until = now() + kTimeToLeave;
  return visitor.connection.leave() ? Verdict::Stays : Verdict::Goes;
}

Door::Verdict Door::hear(Visitor& visitor, Rank& rank) const {
  Connection& connection = visitor.connection;
  if (now() >= visitor.until) {
    return Verdict::Goes;
  }
  if (visitor.leaving) {
    return connection.leave() ? Verdict::Stays : Verdict::Goes;
  }
  if (!visitor.opened) {
    const std::optional<Bytestring> opening = connection.read(kOpeningLength);
    if (!opening) {
      return connection.ended() ? Verdict::Goes : Verdict::Stays;
    }
    if (const auto fault = fault_of_opening(*opening)) {
      return turn_away(visitor, *fault);
    }
    visitor.opened = true;
  }
  const std::optional<Bytestring> rest = connection.read(kRestLength);
  if (!rest) {
    return connection.ended() ? Verdict::Goes : Verdict::Stays;
  }
  const Introduction introduction = unpack_rest(*rest);
  if (const auto fault = fault_of(introduction, job_)) {
    return turn_away(visitor, *fault);
  }
  rank = Rank{introduction.rank};
  return Verdict::Enters;
}

std::vector<Door::Arrival> Door::hear() {
  admit();
  std::vector<Arrival> arrivals;
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    Rank rank;
    const Verdict verdict = hear(*visitor, rank);
    if (verdict == Verdict::Enters) {
      arrivals.push_back({.rank = rank, .connection = std::move(visitor->connection)});
    }
    visitor = verdict == Verdict::Stays ? std::next(visitor) : visitors_.erase(visitor);
  }
  return arrivals;
}

void Door::refuse(Connection connection, const std::string& reason) {
  Visitor visitor{.connection = std::move(connection), .until = {}};
  if (turn_away(visitor, reason) == Verdict::Stays) {
    visitors_.push_back(std::move(visitor));
  }
}

}  // namespace starling::comm
