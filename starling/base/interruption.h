// Catches SIGINT, SIGTERM and SIGHUP while it lives, so that work can be broken off in good order.
// Those that are ignored stay so. One at a time in a process.
#pragma once

#include <signal.h>

#include <array>

namespace starling {

class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Throws Error{Cancelled} if a signal has come.
  static void check_point();

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace starling
