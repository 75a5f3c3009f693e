// The signals that concern a job, read one after the other instead of interrupting anybody. While
// this lives, they are blocked in the thread that made it; afterwards all is as before.
#pragma once

#include <signal.h>

#include <optional>

#include "starling/launch/descriptor.h"

namespace starling::launch {

class Signals {
 public:
  // SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, except those that this process ignores (as under
  // nohup, or in the background of a script). And always SIGCHLD, and SIGPIPE, which thereby does
  // not end us: writing to a closed pipe fails instead.
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Readable when next() has one.
  const Descriptor& descriptor() const { return descriptor_; }
  std::optional<int> next();

  const sigset_t& previous_mask() const { return previous_mask_; }

 private:
  sigset_t previous_mask_{};
  struct sigaction previous_child_{};
  Descriptor descriptor_;
};

}  // namespace starling::launch
