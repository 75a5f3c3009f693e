#include "starling/launch/worker.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace starling::launch {
namespace {

// As much as a pipe holds: one read takes all that is there.
constexpr std::size_t kReadBytes = 65536;

}  // namespace

Worker::Worker(Process process, Sink sink)
    : process_(std::move(process)),
      sink_(std::move(sink)),
      started_(std::chrono::steady_clock::now()) {
  outcome_.pid = process_.pid;
}

Worker::~Worker() {
  if (!is_gone_) {
    kill_and_wait();
  }
}

void Worker::tell(int signal) const { kill(-process_.pid, signal); }

void Worker::read(Stream stream) {
  if (!descriptor(stream).is_open()) {
    return;
  }
  std::array<char, kReadBytes> buffer;
  const ssize_t got = ::read(descriptor(stream).get(), buffer.data(), buffer.size());
  if (got > 0) {
    lines(stream).take({buffer.data(), static_cast<std::size_t>(got)},
                       [&](std::string_view line) { sink_(stream, line); });
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    finish(stream);
  }
}

void Worker::note_end() {
  siginfo_t info{};
  checked(waitid(P_PID, process_.pid, &info, WEXITED | WNOWAIT), "cannot ask how a worker ended");
  (info.si_code == CLD_EXITED ? outcome_.exit_code : outcome_.signal) = info.si_status;
  outcome_.time = std::chrono::steady_clock::now() - started_;
  process_.end.close();
}

void Worker::dismiss() {
  kill_and_wait();
  for (const Stream stream : {Stream::Out, Stream::Err}) {
    read(stream);
    finish(stream);
  }
}

void Worker::finish(Stream stream) {
  descriptor(stream).close();
  lines(stream).finish([&](std::string_view line) { sink_(stream, line); });
}

void Worker::kill_and_wait() {
  tell(SIGKILL);
  while (waitpid(process_.pid, nullptr, 0) == -1 && errno == EINTR) {
  }
  is_gone_ = true;
}

}  // namespace starling::launch
