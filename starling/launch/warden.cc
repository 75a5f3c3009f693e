#include "starling/launch/warden.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

namespace starling::launch {
namespace {

constexpr int kLine = 3;

// Keeps nothing but the line, under that number.
void let_go(const Descriptor& line, const Descriptor& nothing) {
  for (const int number : {0, 1, 2}) {
    dup2(nothing.get(), number);
  }
  dup2(line.get(), kLine);
  close_range(kLine + 1, ~0U, 0);
}

// Only what is safe in a signal handler may be called here: `groups` has its memory already.
[[noreturn]] void watch(const Descriptor& line, const Descriptor& nothing,
                        std::vector<pid_t>& groups) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setsid();
  prctl(PR_SET_NAME, "starling-warden");
  let_go(line, nothing);
  pid_t word = 0;
  while (read(kLine, &word, sizeof(word)) == sizeof(word)) {
    if (word > 0 && groups.size() < groups.capacity()) {
      groups.push_back(word);
    } else {
      groups.erase(std::remove(groups.begin(), groups.end(), -word), groups.end());
    }
  }
  for (const pid_t group : groups) {
    kill(-group, SIGKILL);
  }
  _exit(EXIT_SUCCESS);
}

}  // namespace

Warden::Warden(std::size_t groups) {
  Pipe pipe = make_pipe();
  Pipe ready = make_pipe();  // closed by the warden when it has let go of everything
  const Descriptor nothing(checked(open("/dev/null", O_RDWR | O_CLOEXEC), "cannot open /dev/null"));
  std::vector<pid_t> guarded;
  guarded.reserve(groups);
  pid_ = checked(fork(), "cannot start a process");
  if (pid_ == 0) {
    pipe.write.close();
    watch(pipe.read, nothing, guarded);
  }
  line_ = std::move(pipe.write);
  ready.write.close();
  char nothing_comes = 0;
  while (read(ready.read.get(), &nothing_comes, 1) == -1 && errno == EINTR) {
  }
}

Warden::~Warden() {
  line_.close();
  while (waitpid(pid_, nullptr, 0) == -1 && errno == EINTR) {
  }
}

void Warden::tell(pid_t word) const {
  [[maybe_unused]] const ssize_t written = write(line_.get(), &word, sizeof(word));
}

}  // namespace starling::launch
