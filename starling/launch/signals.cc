#include "starling/launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <ctime>

namespace starling::launch {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t wanted() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGPIPE);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    if (!is_ignored(signal)) {
      sigaddset(&set, signal);
    }
  }
  return set;
}

}  // namespace

Signals::Signals() {
  const sigset_t set = wanted();
  descriptor_ = Descriptor(
      checked(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "cannot listen for signals"));
  pthread_sigmask(SIG_BLOCK, &set, &previous_mask_);
  // Were SIGCHLD ignored, nobody could ask how a worker ended.
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &previous_child_);
}

Signals::~Signals() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  const timespec at_once{};
  sigtimedwait(&pipe, nullptr, &at_once);  // one that waits would end us now
  sigaction(SIGCHLD, &previous_child_, nullptr);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

std::optional<int> Signals::next() {
  signalfd_siginfo info{};
  if (read(descriptor_.get(), &info, sizeof(info)) != sizeof(info)) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

}  // namespace starling::launch
