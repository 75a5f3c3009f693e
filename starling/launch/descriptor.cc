#include "starling/launch/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace starling::launch {

void Descriptor::close() {
  if (is_open()) {
    ::close(number_);
    number_ = kNone;
  }
}

int checked(int result, const char* failure) {
  if (result == -1) {
    throw std::system_error(errno, std::generic_category(), failure);
  }
  return result;
}

Pipe make_pipe() {
  int ends[2];
  checked(pipe2(ends, O_CLOEXEC), "cannot make a pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace starling::launch
