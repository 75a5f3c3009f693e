#include "starling/comm/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

// An address as the kernel wants it.
struct Place {
  sockaddr_storage address{};
  socklen_t length = 0;
  int family() const { return address.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

std::string error_text(int error) { return std::generic_category().message(error); }

Place unix_place(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // After a zero byte: a name that is no file.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  Place place;
  place.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  std::memcpy(&place.address, &address, sizeof(address));
  return place;
}

// All places of a host; of all interfaces if there is no host. Empty if it is not known just now.
std::vector<Place> tcp_places(const char* host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (host == nullptr ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host, std::to_string(port).c_str(), &hints, &found);
  require(error == 0 || error == EAI_AGAIN, "the host {} cannot be found: {}",
          host == nullptr ? "" : host, gai_strerror(error));
  std::vector<Place> places;
  for (const addrinfo* info = error == 0 ? found : nullptr; info != nullptr; info = info->ai_next) {
    Place& place = places.emplace_back();
    place.length = info->ai_addrlen;
    std::memcpy(&place.address, info->ai_addr, info->ai_addrlen);
  }
  if (error == 0) {
    freeaddrinfo(found);
  }
  return places;
}

bool names_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::vector<Place> places_to_listen(const Address& address) {
  if (address.local) {
    return {unix_place(address.name)};
  }
  std::vector<Place> places =
      tcp_places(names_loopback(address.name) ? address.name.c_str() : nullptr, address.port);
  // One socket of IPv6 serves IPv4 as well.
  std::stable_partition(places.begin(), places.end(),
                        [](const Place& place) { return place.family() == AF_INET6; });
  return places;
}

std::vector<Place> places_to_connect(const Address& address) {
  return address.local ? std::vector{unix_place(address.name)}
                       : tcp_places(address.name.c_str(), address.port);
}

Socket open_socket(int family) {
  return Socket(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void set(const Socket& socket, int level, int option, int value) {
  // Refused only where the option makes no sense, and then it is not needed.
  setsockopt(socket.descriptor(), level, option, &value, sizeof(value));
}

// Listens at one place; 0, or the error.
int listen_at(const Socket& socket, const Place& place) {
  if (!socket.valid()) {
    return errno;
  }
  if (place.family() != AF_UNIX) {
    // A port whose last connections are fading is free; one where somebody listens is not.
    set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  }
  if (place.family() == AF_INET6) {
    set(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  }
  const bool listens = bind(socket.descriptor(), place.get(), place.length) == 0 &&
                       listen(socket.descriptor(), SOMAXCONN) == 0;
  return listens ? 0 : errno;
}

// A connection to a port on this machine where nobody listens may be given that very port at its
// own end, and then is connected to itself.
bool connected_to_itself(const Socket& socket) {
  Place own;
  Place other;
  own.length = other.length = sizeof(sockaddr_storage);
  if (getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&own.address), &own.length) !=
          0 ||
      getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&other.address),
                  &other.length) != 0) {
    return false;
  }
  return own.family() != AF_UNIX && own.length == other.length &&
         std::memcmp(&own.address, &other.address, own.length) == 0;
}

// Connects to one place; 0, or the error.
int connect_at(const Socket& socket, const Place& place, WallTime until) {
  if (!socket.valid()) {
    return errno;
  }
  if (connect(socket.descriptor(), place.get(), place.length) != 0) {
    if (errno != EINPROGRESS) {
      return errno;
    }
    if (!wait_for(socket, POLLOUT, until)) {
      return ETIMEDOUT;
    }
    int error = 0;
    socklen_t length = sizeof(error);
    getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      return error;
    }
  }
  return connected_to_itself(socket) ? ECONNREFUSED : 0;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

int Socket::release() { return std::exchange(descriptor_, -1); }

Socket::~Socket() {
  if (valid()) {
    close(descriptor_);
  }
}

Socket listen_at(const Address& address, const std::string& meet) {
  int error = EADDRNOTAVAIL;
  for (const Place& place : places_to_listen(address)) {
    Socket socket = open_socket(place.family());
    error = listen_at(socket, place);
    require(error != EADDRINUSE,
            "worker 0 cannot listen at {}: somebody else does; perhaps another "
            "job runs there",
            meet);
    if (error == 0) {
      return socket;
    }
  }
  throw Error(ErrorCode::Input,
              fmt::format("worker 0 cannot listen at {}: {}", meet, error_text(error)));
}

std::optional<Socket> accept_at(const Socket& listener) {
  Socket socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.valid()) {
    require(errno != EMFILE && errno != ENFILE,
            "worker 0 has too few file descriptors for all "
            "workers; raise the limit (ulimit -n)");
    return std::nullopt;
  }
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

Attempt connect_to(const Address& address, WallTime until) {
  Attempt attempt{.socket = {}, .reason = "its host is not known just now"};
  for (const Place& place : places_to_connect(address)) {
    Socket socket = open_socket(place.family());
    const int error = connect_at(socket, place, until);
    if (error == 0) {
      set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
      return {.socket = std::move(socket), .reason = {}};
    }
    attempt.reason = error_text(error);
  }
  return attempt;
}

void sleep_on(std::span<pollfd> polls, WallTime until) {
  const auto left = until - std::chrono::steady_clock::now();
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  // A signal ends it early: callers look again anyway.
  poll(polls.data(), polls.size(), static_cast<int>(std::clamp<std::int64_t>(rounded, 0, 60'000)));
}

bool wait_for(const Socket& socket, short events, WallTime until) {
  pollfd one{.fd = socket.descriptor(), .events = events, .revents = 0};
  while (one.revents == 0 && std::chrono::steady_clock::now() < until) {
    sleep_on({&one, 1}, until);
  }
  return one.revents != 0;
}

}  // namespace starling::comm
