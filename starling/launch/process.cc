#include "starling/launch/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "starling/base/error.h"

namespace starling::launch {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (const std::string& word : words) {
    all.push_back(const_cast<char*>(word.c_str()));  // exec takes them so, and only reads
  }
  all.push_back(nullptr);
  return all;
}

// Made before the fork: after it, only what is safe in a signal handler may be called.
struct Start {
  std::vector<char*> command;
  std::vector<char*> environment;
  const Inheritance& inheritance;
  pid_t parent;
  Descriptor in;
  Pipe out;
  Pipe err;
  Pipe failure;  // the child writes an errno into it, or closes it by running the command
};

// What the child does between fork and exec. Returns only if that fails.
void become(const Start& start) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != start.parent) {  // it ended before we asked to be told
    _exit(EXIT_FAILURE);
  }
  if (dup2(start.in.get(), STDIN_FILENO) == -1 ||
      dup2(start.out.write.get(), STDOUT_FILENO) == -1 ||
      dup2(start.err.write.get(), STDERR_FILENO) == -1 ||
      setrlimit(RLIMIT_NOFILE, &start.inheritance.open_files) == -1 ||
      sigprocmask(SIG_SETMASK, &start.inheritance.mask, nullptr) == -1) {
    return;
  }
  execvpe(start.command[0], start.command.data(), start.environment.data());
}

[[noreturn]] void run_child(const Start& start) {
  become(start);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(start.failure.write.get(), &error, sizeof(error));
  _exit(EXIT_FAILURE);
}

// Waits until the command runs. Returns the errno if it does not, else 0.
int failure_of(Start& start) {
  start.failure.write.close();
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(start.failure.read.get(), &error, sizeof(error));
  } while (got == -1 && errno == EINTR);
  return got == sizeof(error) ? error : 0;
}

void make_nonblocking(const Descriptor& descriptor) {
  checked(fcntl(descriptor.get(), F_SETFL, O_NONBLOCK), "cannot set up a pipe");
}

// glibc 2.36 declares its own in a way that C++ cannot call.
int open_pidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

Process start_process(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment, const Inheritance& inheritance) {
  Start start{
      .command = pointers(command),
      .environment = pointers(environment),
      .inheritance = inheritance,
      .parent = getpid(),
      .in = Descriptor(checked(open("/dev/null", O_RDONLY | O_CLOEXEC), "cannot open /dev/null")),
      .out = make_pipe(),
      .err = make_pipe(),
      .failure = make_pipe()};
  make_nonblocking(start.out.read);
  make_nonblocking(start.err.read);
  const pid_t pid = checked(fork(), "cannot start a process");
  if (pid == 0) {
    run_child(start);
  }
  setpgid(pid, pid);  // both do it, so that neither depends on the other's haste
  const int failure = failure_of(start);
  Descriptor end(failure == 0 ? open_pidfd(pid) : -1);
  if (!end.is_open()) {
    const int error = failure == 0 ? errno : 0;
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    require(failure == 0, "cannot run '{}': {}", command[0],
            std::generic_category().message(failure));
    throw std::system_error(error, std::generic_category(), "cannot watch a process");
  }
  return {pid, std::move(end), std::move(start.out.read), std::move(start.err.read)};
}

}  // namespace starling::launch
