// Stays with the workers of one job from their start until all are gone: one thread, which waits
// for output, ends and signals at once, and decides who is ended when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "starling/base/time.h"
#include "starling/launch/descriptor.h"
#include "starling/launch/launch.h"
#include "starling/launch/process.h"
#include "starling/launch/signals.h"
#include "starling/launch/strays.h"
#include "starling/launch/warden.h"
#include "starling/launch/worker.h"

namespace starling::launch {

class Supervisor {
 public:
  // What is passed by reference outlives it. Whoever is not gone when it is destroyed is killed.
  Supervisor(const Options& options, const Inheritance& inheritance, Signals& signals,
             const Warden& warden, Strays& strays);

  // Requires: called once.
  Result run();

 private:
  enum class Source : std::uint8_t { Signal, End, Out, Err };

  void start_all();
  void watch(const Descriptor& descriptor, Source source, std::size_t rank);
  int milliseconds_to_wait() const;
  void wait();
  void handle(Source source, std::size_t rank);
  void dismiss_those_due();

  void on_signal(int signal);
  void on_end(std::size_t rank);
  void on_loss(std::size_t rank);

  bool is_ending() const { return kill_at_.has_value(); }
  // Who has not ended after the grace time is killed. Asked twice, the first counts.
  void begin_ending();
  void tell_all(int signal) const;
  void kill_all();

  const Options& options_;
  const Inheritance inheritance_;
  Signals& signals_;
  const Warden& warden_;
  Strays& strays_;
  Descriptor epoll_;
  std::deque<Worker> workers_;
  std::vector<WallTime> due_;  // of each worker that has ended: when it is dismissed at the latest
  std::size_t left_ = 0;       // workers that are not gone
  std::optional<WallTime> kill_at_;
  bool is_killed_ = false;
  WallTime interrupted_at_;
  Result result_;
};

}  // namespace starling::launch
