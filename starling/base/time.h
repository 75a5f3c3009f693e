// Three clocks that cannot be mixed up:
//   WallTime  the machine's steady clock
//   SimTime   the virtual network's, in picoseconds: integers, so that replays agree to the bit
//   Time      what a worker's endpoint tells it, in nanoseconds, real or virtual
#pragma once

#include <chrono>
#include <cstdint>

namespace starling {

using WallTime = std::chrono::steady_clock::time_point;

using SimDuration = std::chrono::duration<std::int64_t, std::pico>;
struct SimClock {
  using rep = SimDuration::rep;
  using period = SimDuration::period;
  using duration = SimDuration;
  using time_point = std::chrono::time_point<SimClock>;
  static constexpr bool is_steady = true;
};
using SimTime = SimClock::time_point;

using Duration = std::chrono::nanoseconds;
struct WorkerClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<WorkerClock>;
  static constexpr bool is_steady = true;
};
using Time = WorkerClock::time_point;

using Seconds = std::chrono::duration<double>;

constexpr SimDuration sim_duration(double seconds) {
  return SimDuration(static_cast<std::int64_t>(seconds * 1e12 + (seconds < 0 ? -0.5 : 0.5)));
}

template <typename Rep, typename Period>
constexpr double seconds(std::chrono::duration<Rep, Period> d) {
  return Seconds(d).count();
}

}  // namespace starling
