#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/door.h"
#include "starling/comm/protocol.h"
#include "starling/comm/secret.h"
#include "starling/comm/socket_rendezvous.h"

namespace starling::comm {
namespace {

// How long a failure may take to be told to workers who do not read.
constexpr auto kTimeToTell = std::chrono::seconds(1);
// Workers of one job start at about the same time: after a failure worker 0 does not wait longer
// than this for those who have not come yet.
constexpr auto kTimeForLatecomers = std::chrono::seconds(10);
constexpr std::size_t kMostNamed = 8;

WallTime now() { return std::chrono::steady_clock::now(); }

// "worker 3", "workers 1, 2, 5", "workers 1, 2, 3, 4, 5, 6, 7, 8 and 24 more"
std::string names_of(std::span<const std::size_t> ranks) {
  const std::span<const std::size_t> named = ranks.first(std::min(ranks.size(), kMostNamed));
  std::string text =
      fmt::format("worker{} {}", ranks.size() == 1 ? "" : "s", fmt::join(named, ", "));
  if (ranks.size() > named.size()) {
    text += fmt::format(" and {} more", ranks.size() - named.size());
  }
  return text;
}

class SocketHost final : public Rendezvous {
 public:
  SocketHost(const Job& job, Duration patience);

  Rank rank() const override { return job_.rank; }
  std::size_t size() const override { return job_.size; }
  std::string how() const override { return std::string(name_of(job_.launcher)); }
  std::string secret() const override { return secret_; }
  std::vector<Bytestring> exchange(std::span<const std::byte> own) override;

 private:
  using Members = std::vector<std::optional<Connection>>;
  using Brought = std::vector<std::optional<Bytestring>>;

  // Waits until there is one of everything; Stalled if that takes too long: "workers 1, 2 <fault>".
  template <typename Things>
  void complete(const Things& things, Brought* brought, std::string_view fault);
  // Sleeps until something happens at the door or at a member.
  void sleep(std::vector<pollfd>& polls, const Brought* brought, WallTime until) const;
  void open_door();
  void look_after(std::size_t member, short events, Brought* brought);
  void take(std::size_t member, Brought& brought);
  // Sends the bytes to all who are there, until all have them or the time has come; those who do
  // not.
  std::vector<std::size_t> send_to_all(std::span<const std::byte> bytes, WallTime until);
  // Sends as much as goes now; whether something is left to send.
  bool send_some(std::size_t member, std::span<const std::byte>& left);
  // Tell all, and throw.
  [[noreturn]] void lose(std::size_t member);
  [[noreturn]] void fail(ErrorCode code, const std::string& text);
  // Those who come after a failure hear of it too. Without it they would find nobody here, and name
  // worker 0.
  void tell_latecomers(std::span<const std::byte> frame);
  bool all_came() const { return std::ranges::find(came_, false) == came_.end(); }

  const Job job_;
  const Duration patience_;
  const std::string secret_;
  Door door_;
  Members members_;         // by rank; none at 0, and none where a worker has not come or is gone
  std::vector<bool> came_;  // by rank; also of those who are gone
  const WallTime gathered_by_;
  std::size_t held_ = 0;  // bytes of this exchange
};

SocketHost::SocketHost(const Job& job, Duration patience)
    : job_(job),
      patience_(patience),
      secret_(job.secret.empty() ? draw_secret() : job.secret),
      door_(job_),
      members_(job.size),
      came_(job.size),
      gathered_by_(now() + patience) {
  came_[0] = true;
  complete(members_, nullptr, "did not come");
  const Bytestring welcome =
      pack_frame(FrameKind::Welcome, std::as_bytes(std::span<const char>(secret_)));
  send_to_all(welcome, now() + patience_);
}

std::vector<Bytestring> SocketHost::exchange(std::span<const std::byte> own) {
  check_brought(own);
  Brought brought(size());
  brought[0] = Bytestring(own.begin(), own.end());
  held_ = own.size();
  for (std::size_t member = 1; member < size(); ++member) {
    if (!members_[member]) {
      lose(member);
    }
  }
  complete(brought, &brought, "came, but did not bring what all wait for,");
  Packer packer;
  std::vector<Bytestring> table;
  for (std::optional<Bytestring>& bytes : brought) {
    packer.number(static_cast<std::uint32_t>(bytes->size()));
    packer.bytes(*bytes);
    table.push_back(std::move(*bytes));
  }
  const auto late = send_to_all(pack_frame(FrameKind::Table, packer.packed()), now() + patience_);
  if (!late.empty()) {
    throw Error(ErrorCode::Stalled,
                fmt::format("{} did not take what all had brought within {:.3g} s", names_of(late),
                            seconds(patience_)));
  }
  return table;
}

template <typename Things>
void SocketHost::complete(const Things& things, Brought* brought, std::string_view fault) {
  const WallTime until = now() + patience_;
  const auto missing = [&] {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 1; rank < size(); ++rank) {
      if (!things[rank]) {
        ranks.push_back(rank);
      }
    }
    return ranks;
  };
  std::vector<pollfd> polls;
  while (!missing().empty()) {
    if (now() >= until) {
      fail(ErrorCode::Stalled,
           fmt::format("{} {} within {:.3g} s", names_of(missing()), fault, seconds(patience_)));
    }
    sleep(polls, brought, until);
    for (std::size_t member = 1; member < size(); ++member) {
      look_after(member, polls[member - 1].revents, brought);
    }
    open_door();
  }
}

void SocketHost::sleep(std::vector<pollfd>& polls, const Brought* brought, WallTime until) const {
  polls.clear();
  for (std::size_t member = 1; member < size(); ++member) {
    const bool expected = brought != nullptr && !(*brought)[member];
    // The kernel passes over a negative descriptor.
    polls.push_back({.fd = members_[member] ? members_[member]->socket().descriptor() : -1,
                     .events = static_cast<short>(POLLRDHUP | (expected ? POLLIN : 0)),
                     .revents = 0});
  }
  door_.watch(polls);
  sleep_on(polls, std::min(until, door_.until()));
}

void SocketHost::open_door() {
  std::vector<Door::Arrival> arrivals;
  try {
    arrivals = door_.hear();
  } catch (const Error& error) {
    fail(error.code(), error.what());
  }
  for (Door::Arrival& arrival : arrivals) {
    std::optional<Connection>& member = members_[arrival.rank.index()];
    if (!member) {
      member = std::move(arrival.connection);
      came_[arrival.rank.index()] = true;
      continue;
    }
    door_.refuse(
        std::move(arrival.connection),
        fmt::format("worker {} is there already; perhaps another job is there", arrival.rank));
  }
}

void SocketHost::look_after(std::size_t member, short events, Brought* brought) {
  if ((events & POLLIN) != 0 && brought != nullptr && !(*brought)[member]) {
    take(member, *brought);
  }
  if ((events & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
    lose(member);
  }
}

void SocketHost::lose(std::size_t member) {
  members_[member].reset();
  fail(ErrorCode::Lost, fmt::format("worker {} ended while the workers were meeting", member));
}

void SocketHost::take(std::size_t member, Brought& brought) {
  std::optional<Frame> frame;
  try {
    frame = members_[member]->read_frame(kLargestBrought);
  } catch (const Error& error) {
    fail(error.code(), fmt::format("worker {}: {}", member, error.what()));
  }
  if (!frame) {
    return;
  }
  if (frame->kind != FrameKind::Brought) {
    fail(ErrorCode::Mismatch, fmt::format("worker {} said something unexpected", member));
  }
  held_ += frame->bytes.size();
  if (held_ > kLargestTable) {
    fail(ErrorCode::Input,
         fmt::format("the workers bring more than {} bytes when they meet", kLargestTable));
  }
  brought[member] = std::move(frame->bytes);
}

std::vector<std::size_t> SocketHost::send_to_all(std::span<const std::byte> bytes, WallTime until) {
  std::vector<std::span<const std::byte>> left(size(), bytes);
  std::vector<std::size_t> unfinished;
  for (std::size_t member = 1; member < size(); ++member) {
    if (send_some(member, left[member])) {
      unfinished.push_back(member);
    }
  }
  std::vector<pollfd> polls;
  while (!unfinished.empty() && now() < until) {
    polls.clear();
    for (const std::size_t member : unfinished) {
      polls.push_back(
          {.fd = members_[member]->socket().descriptor(), .events = POLLOUT, .revents = 0});
    }
    sleep_on(polls, until);
    auto poll = polls.begin();
    std::erase_if(unfinished, [&](std::size_t member) {
      return (poll++)->revents != 0 && !send_some(member, left[member]);
    });
  }
  return unfinished;
}

bool SocketHost::send_some(std::size_t member, std::span<const std::byte>& left) {
  while (members_[member] && !left.empty()) {
    const std::optional<std::size_t> sent = members_[member]->write(left);
    if (!sent) {
      // Nobody waits for it any more; the next exchange will.
      members_[member].reset();
      return false;
    }
    if (*sent == 0) {
      return true;
    }
    left = left.subspan(*sent);
  }
  return false;
}

void SocketHost::fail(ErrorCode code, const std::string& text) {
  Packer packer;
  packer.number(static_cast<std::uint32_t>(code));
  packer.text(text);
  const Bytestring frame = pack_frame(FrameKind::Failed, packer.packed());
  send_to_all(frame, now() + kTimeToTell);
  tell_latecomers(frame);
  throw Error(code, text);
}

void SocketHost::tell_latecomers(std::span<const std::byte> frame) {
  const WallTime until = std::min<WallTime>(gathered_by_, now() + kTimeForLatecomers);
  std::vector<pollfd> polls;
  try {
    while (!all_came() && now() < until) {
      polls.clear();
      door_.watch(polls);
      sleep_on(polls, std::min(until, door_.until()));
      for (Door::Arrival& arrival : door_.hear()) {
        // It fits into the empty buffer of a new connection.
        arrival.connection.write(frame);
        came_[arrival.rank.index()] = true;
      }
    }
  } catch (const Error&) {
    return;  // The failure that is being told is the one to report.
  }
}

}  // namespace

std::unique_ptr<Rendezvous> host_rendezvous(const Job& job, Duration patience) {
  return std::make_unique<SocketHost>(job, patience);
}

}  // namespace starling::comm
