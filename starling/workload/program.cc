#include "starling/workload/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "starling/base/error.h"

namespace starling::workload {
namespace {

// What the child does before the program runs.
class Actions {
 public:
  Actions() { posix_spawn_file_actions_init(&actions_); }
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::string read_to_end(int descriptor) {
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0; (got = read(descriptor, piece.data(), piece.size())) != 0;) {
    if (got > 0) {
      text.append(piece.data(), static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      break;
    }
  }
  return text;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    check(errno == EINTR, "waitpid: {}", std::strerror(errno));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::optional<Ended> run_program(const std::vector<std::string>& words,
                                 const std::filesystem::path& folder) {
  std::array<int, 2> ends{};
  check(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe2: {}", std::strerror(errno));
  Actions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(actions.get(), folder.c_str());
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int problem =
      posix_spawnp(&child, arguments[0], actions.get(), nullptr, arguments.data(), environ);
  close(ends[1]);
  Ended ended;
  if (problem == 0) {
    ended.output = read_to_end(ends[0]);
    ended.code = wait_for(child);
  }
  close(ends[0]);
  if (problem == ENOENT) {
    return std::nullopt;
  }
  if (problem != 0) {
    throw Error(ErrorCode::Environment,
                fmt::format("cannot run {}: {}", words[0], std::strerror(problem)));
  }
  return ended;
}

}  // namespace starling::workload
