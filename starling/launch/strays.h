// Processes of a job that are in no worker's group any more and whose parent has ended. While this
// lives they become children of this process instead of leaving it; at its end they are killed.
//
// Every child of this process that was not there at the beginning and is not exempt counts as one.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

namespace starling::launch {

class Strays {
 public:
  Strays();
  ~Strays();
  Strays(const Strays&) = delete;
  Strays& operator=(const Strays&) = delete;

  // A child that somebody else waits for, until it is forgotten.
  void exempt(pid_t child) { exempt_.insert(child); }
  void forget(pid_t child) { exempt_.erase(child); }

  // Takes note of those that have ended, so that they do not stay as zombies.
  void reap() const;

 private:
  std::vector<pid_t> find() const;

  std::set<pid_t> exempt_;
  int was_reaper_ = 0;
};

}  // namespace starling::launch
