// The sockets on which workers meet: never blocking, and not inherited by programs that a worker
// starts.
#pragma once

#include <poll.h>

#include <optional>
#include <span>
#include <string>

#include "starling/base/time.h"
#include "starling/comm/address.h"

namespace starling::comm {

// Owns a file descriptor, or none.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  bool valid() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  // Whoever asks owns it from here on.
  int release();

 private:
  int descriptor_ = -1;
};

// Listens at the address: on the loopback interface if that is what the host names, otherwise on
// all interfaces, for a host often has another address for itself than for others. Throws
// Error{Input} if somebody else is there or it cannot be had; `meet` is its name in that text.
Socket listen_at(const Address& address, const std::string& meet);

// The next connection at the door, or none. Throws Error{Input} if descriptors have run out.
std::optional<Socket> accept_at(const Socket& listener);

// One attempt to connect, at every address of the host.
struct Attempt {
  Socket socket;       // valid if connected
  std::string reason;  // if not
};

// Gives up at `until`. Throws Error{Input} if there is no such host.
Attempt connect_to(const Address& address, WallTime until);

// Sleeps until one of them is ready, or until the time has come.
void sleep_on(std::span<pollfd> polls, WallTime until);

// The same for one; false if the time has come first.
bool wait_for(const Socket& socket, short events, WallTime until);

}  // namespace starling::comm
