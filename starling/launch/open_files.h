// Raises the limit of open files of this process for as long as it lives, so that a job of many
// workers can be watched.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace starling::launch {

class OpenFiles {
 public:
  // Throws Error{Input}, naming the limit, if the machine does not allow as many as that takes.
  explicit OpenFiles(std::size_t workers);
  ~OpenFiles();
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;

  // The limit that workers are to have.
  const rlimit& previous() const { return previous_; }

 private:
  rlimit previous_{};
};

}  // namespace starling::launch
