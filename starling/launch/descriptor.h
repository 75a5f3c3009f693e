// A file descriptor with one owner, who closes it.
#pragma once

#include <utility>

namespace starling::launch {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, kNone)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number_; }
  bool is_open() const { return number_ != kNone; }
  void close();

 private:
  static constexpr int kNone = -1;  // as the kernel has it
  int number_ = kNone;
};

// `result` of a system call; throws std::system_error that begins with `failure` if it is −1.
int checked(int result, const char* failure);

// Both ends are closed by exec.
struct Pipe {
  Descriptor read;
  Descriptor write;
};
Pipe make_pipe();

}  // namespace starling::launch
