// A process that leads a group of its own, and the ends of its pipes that are ours.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "starling/launch/descriptor.h"

namespace starling::launch {

// What this process changed for itself, and a process it starts is to have as it was.
struct Inheritance {
  sigset_t mask{};
  rlimit open_files{};
};

struct Process {
  pid_t pid = 0;   // of the process and of its group
  Descriptor end;  // a pidfd: readable when the process has ended
  Descriptor out;  // non-blocking, like err
  Descriptor err;
};

// Starts `command` with that environment (NAME=VALUE), with an empty stdin. When the calling thread
// ends, however it does, the process is killed. Waits until the command runs; throws Error{Input}
// if it cannot be run. Requires: the command is not empty.
Process start_process(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment, const Inheritance& inheritance);

}  // namespace starling::launch
