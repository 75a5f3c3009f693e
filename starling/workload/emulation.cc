#include "starling/workload/emulation.h"

#include <chrono>
#include <thread>

namespace starling::workload {

train::StepReport emulate_step(train::DataParallel& replica, Duration late, ComputeTime time) {
  return replica.emulate([&](const std::function<void(std::size_t)>& ready) {
    using Clock = std::chrono::steady_clock;
    const auto buckets = static_cast<std::int64_t>(replica.buckets());
    // A sleep that ends late makes the next one shorter; waiting for others does not.
    WallTime until = Clock::now() + late + time.forward;
    for (std::int64_t k = 0; k < buckets; ++k) {
      until += time.backward * (k + 1) / buckets - time.backward * k / buckets;
      std::this_thread::sleep_until(until);
      const WallTime slept = Clock::now();
      ready(static_cast<std::size_t>(k));
      until += Clock::now() - slept;
    }
  });
}

}  // namespace starling::workload
