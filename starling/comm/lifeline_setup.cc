// Both sides say who they are and what the secret is; then the one who connected asks the other a
// few times what time it is, keeps the answer that came back fastest, and tells the other.
#include "starling/comm/lifeline_setup.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>

#include "starling/base/error.h"
#include "starling/comm/protocol.h"

namespace starling::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kQuestions = 5;

struct Hello {
  std::array<char, 8> magic{'s', 't', 'a', 'r', 'l', 'i', 'f', 'e'};
  std::uint32_t version = kProtocolVersion;
  std::uint32_t rank = 0;
  std::array<char, kLongestSecret> secret{};
};

Hello hello_of(Rank rank, const std::string& secret) {
  Hello hello;
  hello.rank = rank.value;
  std::memcpy(hello.secret.data(), secret.data(), std::min(secret.size(), hello.secret.size()));
  return hello;
}

bool knows(const Hello& theirs, const Hello& ours) {
  return theirs.magic == ours.magic && theirs.version == ours.version &&
         theirs.secret == ours.secret;
}

std::int64_t clock_now() {
  return std::chrono::duration_cast<Duration>(Clock::now().time_since_epoch()).count();
}

struct Verdict {
  std::int64_t ahead = 0;  // of the one who accepted
  std::int64_t error = 0;
};

int remaining(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

template <typename T>
bool put(int file, const T& value) {
  return send(file, &value, sizeof(value), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(value));
}

// All of `value`, or false: time is up, or the other side has ended.
template <typename T>
bool get(int file, T& value, Clock::time_point until) {
  std::size_t have = 0;
  while (have < sizeof(T)) {
    pollfd waiting{.fd = file, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, remaining(until)) <= 0) {
      return false;
    }
    const ssize_t got =
        recv(file, reinterpret_cast<char*>(&value) + have, sizeof(T) - have, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      return false;
    }
    have += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return true;
}

std::optional<Verdict> ask_the_time(int file, Clock::time_point until) {
  Verdict best{.ahead = 0, .error = INT64_MAX};
  for (int i = 0; i < kQuestions; ++i) {
    const std::int64_t before = clock_now();
    std::int64_t theirs = 0;
    if (!put(file, before) || !get(file, theirs, until)) {
      return std::nullopt;
    }
    const std::int64_t after = clock_now();
    if ((after - before) / 2 < best.error) {
      best = {.ahead = theirs - (before + after) / 2, .error = (after - before) / 2};
    }
  }
  return put(file, best) ? std::optional(best) : std::nullopt;
}

// To a worker of lower rank, at whichever of its addresses answers as that worker.
std::optional<SetUpLine> call(Rank peer, const Lifelines::Peer& at, const Hello& own,
                              Clock::time_point until) {
  std::vector<std::string> hosts = at.address.hosts;
  if (at.same_node || hosts.empty()) {
    hosts.insert(hosts.begin(), {"127.0.0.1", "::1"});
  }
  for (const std::string& host : hosts) {
    const auto try_until =
        hosts.size() == 1 ? until : std::min(until, Clock::now() + std::chrono::seconds(3));
    Socket socket = connect_to({.name = host, .port = at.address.port}, try_until).socket;
    const int file = socket.descriptor();
    Hello theirs;
    if (!socket.valid() || !put(file, own) || !get(file, theirs, until) || !knows(theirs, own) ||
        theirs.rank != peer.value) {
      continue;
    }
    if (const auto verdict = ask_the_time(file, until)) {
      return SetUpLine{std::move(socket), {Duration(verdict->ahead), Duration(verdict->error)}};
    }
  }
  return std::nullopt;
}

// A connection that came in: it introduces itself, asks for the time, and leaves its verdict.
class Caller {
 public:
  explicit Caller(int file) : socket_(file) {}
  int file() const { return socket_.descriptor(); }
  bool done() const { return stage_ > kQuestions + 1; }
  bool introduced() const { return stage_ > 0; }
  Rank rank() const { return Rank{hello_.rank}; }
  SetUpLine take() {
    return {std::move(socket_), {Duration(-verdict_.ahead), Duration(verdict_.error)}};
  }

  // Reads what there is; false: not one of us, or gone.
  bool read(const Hello& own) {
    std::byte* into = stage_ == 0            ? reinterpret_cast<std::byte*>(&hello_)
                      : stage_ <= kQuestions ? reinterpret_cast<std::byte*>(&question_)
                                             : reinterpret_cast<std::byte*>(&verdict_);
    const std::size_t size = stage_ == 0            ? sizeof(hello_)
                             : stage_ <= kQuestions ? sizeof(question_)
                                                    : sizeof(verdict_);
    const ssize_t got = recv(socket_.descriptor(), into + have_, size - have_, MSG_DONTWAIT);
    if (got <= 0) {
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    have_ += static_cast<std::size_t>(got);
    if (have_ < size) {
      return true;
    }
    have_ = 0;
    return answer(own);
  }

 private:
  bool answer(const Hello& own) {
    // Who does not know the secret has not said who it is, whatever it claims.
    if (stage_ == 0 && !knows(hello_, own)) {
      return false;
    }
    ++stage_;
    if (stage_ == 1) {
      return put(socket_.descriptor(), own);
    }
    return stage_ > kQuestions + 1 || put(socket_.descriptor(), clock_now());
  }

  Socket socket_;
  int stage_ = 0;
  std::size_t have_ = 0;
  Hello hello_;
  std::int64_t question_ = 0;
  Verdict verdict_;
};

// Waits for all workers of higher rank; others that call are turned away.
class Reception {
 public:
  Reception(Rank self, int listener, const Hello& own, std::vector<SetUpLine>& lines)
      : self_(self), listener_(listener), own_(own), lines_(lines) {}

  void run(Clock::time_point until) {
    missing_ = lines_.size() - self_.index() - 1;
    while (missing_ > 0) {
      std::vector<pollfd> files = {{.fd = listener_, .events = POLLIN, .revents = 0}};
      for (const Caller& caller : callers_) {
        files.push_back({.fd = caller.file(), .events = POLLIN, .revents = 0});
      }
      if (poll(files.data(), files.size(), remaining(until)) <= 0 && Clock::now() >= until) {
        complain();
      }
      listen_to_all();
      accept_all();
    }
  }

 private:
  void accept_all() {
    for (int file = 0; (file = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      const int on = 1;
      setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      callers_.emplace_back(file);
    }
  }

  void listen_to_all() {
    for (auto caller = callers_.begin(); caller != callers_.end();) {
      const bool stays = caller->read(own_);
      if (stays && !caller->done()) {
        ++caller;
        continue;
      }
      const Rank rank = caller->rank();
      const bool expected =
          rank > self_ && rank.index() < lines_.size() && !lines_[rank.index()].socket.valid();
      if (stays && expected) {
        lines_[rank.index()] = caller->take();
        --missing_;
      } else if (caller->introduced() && expected && !stays) {
        throw Error(ErrorCode::Lost,
                    fmt::format("worker {} ended while the workers were connecting", rank));
      }
      caller = callers_.erase(caller);
    }
  }

  [[noreturn]] void complain() const {
    std::string names;
    for (std::size_t r = self_.index() + 1; r < lines_.size(); ++r) {
      if (!lines_[r].socket.valid()) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", r);
      }
    }
    throw Error(ErrorCode::Stalled,
                fmt::format("worker {} was not reached in time by worker {}", self_, names));
  }

  Rank self_;
  int listener_;
  const Hello& own_;
  std::vector<SetUpLine>& lines_;
  std::list<Caller> callers_;
  std::size_t missing_ = 0;
};

}  // namespace

std::vector<SetUpLine> set_up_lifelines(Rank self, std::span<const Lifelines::Peer> peers,
                                        int listener, const std::string& secret,
                                        Duration patience) {
  const Clock::time_point until = Clock::now() + patience;
  const Hello own = hello_of(self, secret);
  std::vector<SetUpLine> lines(peers.size());
  for (std::uint32_t r = 0; r < self.value; ++r) {
    auto line = call(Rank{r}, peers[r], own, until);
    if (!line) {
      throw Error(
          ErrorCode::Lost,
          fmt::format("worker {} cannot reach worker {} at {} port {}: it has ended, or the "
                      "network does not lead there",
                      self, r,
                      peers[r].address.hosts.empty() ? "this host" : peers[r].address.hosts.front(),
                      peers[r].address.port));
    }
    lines[r] = std::move(*line);
  }
  Reception(self, listener, own, lines).run(until);
  return lines;
}

}  // namespace starling::comm
