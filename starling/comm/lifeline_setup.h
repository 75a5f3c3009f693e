// The handshake of lifelines; used by lifeline.cc alone.
#pragma once

#include <unistd.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "starling/comm/lifeline.h"

namespace starling::comm {

// A file descriptor with an owner.
class File {
 public:
  File() = default;
  explicit File(int file) : file_(file) {}
  File(File&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~File() {
    if (file_ >= 0) {
      ::close(file_);
    }
  }
  int get() const { return file_; }
  int release() { return std::exchange(file_, -1); }
  explicit operator bool() const { return file_ >= 0; }

 private:
  int file_ = -1;
};

struct SetUpLine {
  File file;
  Lifelines::Offset offset;
};

// By rank; the own entry is empty. Contract: the constructor of Lifelines.
std::vector<SetUpLine> set_up_lifelines(Rank self, std::span<const Lifelines::Peer> peers,
                                        int listener, const std::string& secret, Duration patience);

}  // namespace starling::comm
