// A process that outlives this one by a moment: when this one is gone without having ended its
// workers, it kills their process groups. The workers themselves are killed by the kernel in that
// case; the warden is there for what they started.
//
// It does nothing else, holds nothing open, and is in a session of its own, so that what ends this
// process does not end it.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "starling/launch/descriptor.h"

namespace starling::launch {

class Warden {
 public:
  // For at most so many groups at a time. Returns when it is on guard.
  explicit Warden(std::size_t groups);
  ~Warden();
  Warden(const Warden&) = delete;
  Warden& operator=(const Warden&) = delete;

  void guard(pid_t group) const { tell(group); }
  void release(pid_t group) const { tell(-group); }

 private:
  // A warden that was killed is not missed: all it does is done by launch() as well.
  void tell(pid_t word) const;

  pid_t pid_ = 0;
  Descriptor line_;
};

}  // namespace starling::launch
