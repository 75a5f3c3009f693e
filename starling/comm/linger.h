// Looking on before sleeping.
#pragma once

#include <chrono>
#include <thread>

#include "starling/base/time.h"

namespace starling::comm {

// How long one looks on before one sleeps, after something has happened: to be woken takes longer
// than most answers do. Whoever else wants the core has it meanwhile.
inline constexpr Duration kLinger = std::chrono::microseconds(100);

// Until `ready()`, but not longer than that.
template <typename Ready>
void linger(const Ready& ready) {
  const auto until = std::chrono::steady_clock::now() + kLinger;
  while (!ready() && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
}

}  // namespace starling::comm
