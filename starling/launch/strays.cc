#include "starling/launch/strays.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace starling::launch {
namespace {

// Of all threads of this process, zombies included. A kernel that does not tell has none.
std::vector<pid_t> children() {
  std::vector<pid_t> all;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) {
      all.push_back(child);
    }
  }
  return all;
}

}  // namespace

Strays::Strays() {
  for (const pid_t child : children()) {
    exempt(child);
  }
  prctl(PR_GET_CHILD_SUBREAPER, &was_reaper_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Strays::~Strays() {
  // Whoever is killed may leave children of its own to us.
  for (std::vector<pid_t> strays = find(); !strays.empty(); strays = find()) {
    for (const pid_t stray : strays) {
      if (kill(stray, SIGKILL) == 0) {
        waitpid(stray, nullptr, 0);
      } else {
        exempt(stray);  // it became another user's
      }
    }
  }
  prctl(PR_SET_CHILD_SUBREAPER, was_reaper_);
}

void Strays::reap() const {
  for (const pid_t stray : find()) {
    waitpid(stray, nullptr, WNOHANG);
  }
}

std::vector<pid_t> Strays::find() const {
  std::vector<pid_t> strays = children();
  std::erase_if(strays, [this](pid_t child) { return exempt_.contains(child); });
  return strays;
}

}  // namespace starling::launch
