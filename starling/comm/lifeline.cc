#include "starling/comm/lifeline.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/lifeline_setup.h"

namespace starling::comm {
namespace {

std::string numeric(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes =
      address->sa_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
          : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr ? ""
                                                                                   : text.data();
}

// The addresses of this host that others may reach: IPv4 first, no loopback, no link-local ones.
std::vector<std::string> own_addresses() {
  std::vector<std::string> four;
  std::vector<std::string> six;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return {};
  }
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0 ||
        (at->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    if (at->ifa_addr->sa_family == AF_INET) {
      four.push_back(numeric(at->ifa_addr));
    } else if (at->ifa_addr->sa_family == AF_INET6 &&
               !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6*>(at->ifa_addr)->sin6_addr)) {
      six.push_back(numeric(at->ifa_addr));
    }
  }
  freeifaddrs(list);
  four.insert(four.end(), six.begin(), six.end());
  return four;
}

}  // namespace

// One socket for both families where there is IPv6, otherwise IPv4 alone.
LifelineListener::LifelineListener() {
  for (const int family : {AF_INET6, AF_INET}) {
    file_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file_ < 0) {
      continue;
    }
    const int off = 0;
    sockaddr_storage any{};
    any.ss_family = static_cast<sa_family_t>(family);
    socklen_t length = sizeof(any);
    if (family == AF_INET6) {
      setsockopt(file_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (bind(file_, reinterpret_cast<sockaddr*>(&any),
             family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)) == 0 &&
        ::listen(file_, SOMAXCONN) == 0 &&
        getsockname(file_, reinterpret_cast<sockaddr*>(&any), &length) == 0) {
      port_ = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(any).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(any).sin_port);
      return;
    }
    ::close(std::exchange(file_, -1));
  }
  throw Error(ErrorCode::Input,
              fmt::format("cannot listen on a TCP socket: {}", std::strerror(errno)));
}

LifelineListener::~LifelineListener() { ::close(file_); }

LifelineAddress LifelineListener::address() const { return {port_, own_addresses()}; }

Lifelines::Lifelines(Rank self, std::span<const Peer> peers, LifelineListener& listener,
                     const std::string& secret, Duration patience, LifelineOptions options)
    : options_(options), lines_(peers.size()) {
  std::vector<SetUpLine> made = set_up_lifelines(self, peers, listener.file(), secret, patience);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  check(epoll_ >= 0, "epoll_create1: {}", std::strerror(errno));
  bool any_remote = false;
  for (std::size_t r = 0; r < peers.size(); ++r) {
    if (r == self.index()) {
      continue;
    }
    lines_[r] = {
        .file = made[r].socket.release(), .remote = !peers[r].same_node, .offset = made[r].offset};
    any_remote = any_remote || lines_[r].remote;
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = r}};
    check(epoll_ctl(epoll_, EPOLL_CTL_ADD, lines_[r].file, &event) == 0, "epoll_ctl: {}",
          std::strerror(errno));
  }
  // Who shares our kernel cannot vanish without it.
  next_beat_ = any_remote ? Time::min() : Time::max();
}

Lifelines::~Lifelines() {
  for (const Line& line : lines_) {
    if (line.file >= 0) {
      ::close(line.file);
    }
  }
  if (epoll_ >= 0) {
    ::close(epoll_);
  }
}

void Lifelines::drop(Rank peer) {
  Line& line = lines_[peer.index()];
  if (line.file >= 0) {
    ::close(std::exchange(line.file, -1));
  }
}

bool Lifelines::look(Time now, const std::function<void(Rank)>& lost) {
  bool any = false;
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const Rank peer{static_cast<std::uint32_t>(events[static_cast<std::size_t>(i)].data.u64)};
    Line& line = lines_[peer.index()];
    std::array<char, 256> beats;
    ssize_t got = 1;
    while (line.file >= 0 && got > 0) {
      got = recv(line.file, beats.data(), beats.size(), MSG_DONTWAIT);
    }
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      drop(peer);
      lost(peer);
      any = true;
    }
  }
  if (now >= next_beat_) {
    next_beat_ = now + options_.beat;
    beat(lost, any);
  }
  return any;
}

void Lifelines::beat(const std::function<void(Rank)>& lost, bool& any) {
  for (std::uint32_t r = 0; r < lines_.size(); ++r) {
    Line& line = lines_[r];
    if (line.file < 0 || !line.remote) {
      continue;
    }
    const char beat = 'b';
    const bool gone = send(line.file, &beat, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
                      errno != EAGAIN && errno != EWOULDBLOCK;
    if (gone || vanished(line)) {
      drop(Rank{r});
      lost(Rank{r});
      any = true;
    }
  }
}

// Whether the kernel of the peer has left our beats unacknowledged for longer than the deadline.
bool Lifelines::vanished(Line& line) const {
  constexpr Duration kMostDeadline = std::chrono::minutes(1);
  tcp_info info{};
  socklen_t length = sizeof(info);
  int outstanding = 0;  // bytes that are not acknowledged, whether sent or not
  if (getsockopt(line.file, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      ioctl(line.file, SIOCOUTQ, &outstanding) != 0) {
    return false;
  }
  const Duration silent = std::chrono::milliseconds(info.tcpi_last_ack_recv);
  if (silent < line.silent) {
    line.longest = std::max(line.longest, line.silent);
  }
  // The beat just sent is out as well; it takes another one to tell.
  line.silent = outstanding > 1 ? silent : Duration(0);
  return line.silent > std::clamp(10 * line.longest, options_.least_deadline,
                                  std::max(kMostDeadline, options_.least_deadline));
}

}  // namespace starling::comm
