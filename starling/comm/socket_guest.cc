#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/connection.h"
#include "starling/comm/introduction.h"
#include "starling/comm/socket_rendezvous.h"

namespace starling::comm {
namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(1);
constexpr auto kLongestPause = std::chrono::milliseconds(100);
// Worker 0 knows who is missing, and is to say so before the others give up.
constexpr auto kPatienceForTheVerdict = std::chrono::seconds(2);
// A host that does not answer at all may do so later under a new attempt.
constexpr auto kLongestAttempt = std::chrono::seconds(5);

WallTime now() { return std::chrono::steady_clock::now(); }

class SocketGuest final : public Rendezvous {
 public:
  SocketGuest(const Job& job, Duration patience);

  Rank rank() const override { return job_.rank; }
  std::size_t size() const override { return job_.size; }
  std::string how() const override { return std::string(name_of(job_.launcher)); }
  std::string secret() const override { return secret_; }
  std::vector<Bytestring> exchange(std::span<const std::byte> own) override;

 private:
  // A connection to worker 0, which may not be there yet.
  Socket reach() const;
  // Sends all of it, unless worker 0 takes no more: it may still have said why.
  void send(std::span<const std::byte> bytes, WallTime until);
  // The bytes of the frame of that kind that worker 0 is to send next; throws what it says instead.
  Bytestring expect(FrameKind kind, WallTime until);
  std::optional<Frame> read_frame();
  [[noreturn]] void stop(const Frame& frame) const;
  WallTime deadline() const { return now() + patience_ + kPatienceForTheVerdict; }

  const Job job_;
  const Duration patience_;
  std::string secret_;
  Connection connection_;
};

SocketGuest::SocketGuest(const Job& job, Duration patience)
    : job_(job), patience_(patience), connection_(reach()) {
  const WallTime until = deadline();
  send(introduce(job_), until);
  const Bytestring welcome = expect(FrameKind::Welcome, until);
  secret_ = Unpacker(welcome).all_text();
}

std::vector<Bytestring> SocketGuest::exchange(std::span<const std::byte> own) {
  check_brought(own);
  const WallTime until = deadline();
  send(pack_frame(FrameKind::Brought, own), until);
  const Bytestring bytes = expect(FrameKind::Table, until);
  Unpacker unpacker(bytes);
  std::vector<Bytestring> table;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    const std::span<const std::byte> brought = unpacker.bytes(unpacker.number());
    table.emplace_back(brought.begin(), brought.end());
  }
  return table;
}

Socket SocketGuest::reach() const {
  const std::optional<Address> address = parse_address(job_.meet);
  require(address.has_value(), "'{}' is neither unix:@NAME nor tcp:HOST:PORT", job_.meet);
  const WallTime until = now() + patience_;
  Duration pause = kFirstPause;
  while (true) {
    Attempt attempt = connect_to(*address, std::min<WallTime>(until, now() + kLongestAttempt));
    if (attempt.socket.valid()) {
      return std::move(attempt.socket);
    }
    if (now() >= until) {
      throw Error(ErrorCode::Stalled,
                  fmt::format("worker 0 did not come to {} within {:.3g} s ({})", job_.meet,
                              seconds(patience_), attempt.reason));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<Duration>(2 * pause, kLongestPause);
  }
}

void SocketGuest::send(std::span<const std::byte> bytes, WallTime until) {
  while (!bytes.empty()) {
    const std::optional<std::size_t> sent = connection_.write(bytes);
    if (!sent) {
      return;
    }
    bytes = bytes.subspan(*sent);
    if (*sent == 0 && !wait_for(connection_.socket(), POLLOUT, until)) {
      return;
    }
  }
}

Bytestring SocketGuest::expect(FrameKind kind, WallTime until) {
  std::optional<Frame> frame = read_frame();
  while (!frame) {
    if (connection_.ended()) {
      throw Error(ErrorCode::Lost,
                  fmt::format("worker 0 at {} ended while the workers were meeting", job_.meet));
    }
    if (!wait_for(connection_.socket(), POLLIN, until)) {
      throw Error(
          ErrorCode::Stalled,
          fmt::format("worker 0 at {} did not answer within {:.3g} s: it, or a worker that it "
                      "waits for, does not go on",
                      job_.meet, seconds(patience_ + kPatienceForTheVerdict)));
    }
    frame = read_frame();
  }
  if (frame->kind != kind) {
    stop(*frame);
  }
  return std::move(frame->bytes);
}

std::optional<Frame> SocketGuest::read_frame() {
  try {
    return connection_.read_frame(kLargestTable + 4 * size());
  } catch (const Error& error) {
    throw Error(ErrorCode::Input, fmt::format("something else than worker 0 answers at {}: {}",
                                              job_.meet, error.what()));
  }
}

void SocketGuest::stop(const Frame& frame) const {
  Unpacker unpacker(frame.bytes);
  if (frame.kind == FrameKind::Failed) {
    const std::uint32_t code = unpacker.number();
    throw Error(static_cast<ErrorCode>(code), unpacker.all_text());
  }
  require(frame.kind != FrameKind::Refused, "worker 0 at {} refused us: {}", job_.meet,
          unpacker.all_text());
  throw Error(ErrorCode::Mismatch,
              fmt::format("worker 0 at {} said something unexpected", job_.meet));
}

}  // namespace

std::unique_ptr<Rendezvous> join_rendezvous(const Job& job, Duration patience) {
  return std::make_unique<SocketGuest>(job, patience);
}

}  // namespace starling::comm
