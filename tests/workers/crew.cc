#include "tests/workers/crew.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <random>
#include <thread>

namespace starling::test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void become(std::vector<std::string> command, std::vector<std::string> variables,
                         int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (std::string& variable : variables) {
    putenv(variable.data());
  }
  std::vector<char*> words;
  for (std::string& word : command) {
    words.push_back(word.data());
  }
  words.push_back(nullptr);
  execvp(words[0], words.data());
  _exit(127);
}

// Until `done`, or the test has failed.
template <typename Done>
void poll_until(std::chrono::seconds patience, const Done& done, const std::string& what) {
  const auto until = Clock::now() + patience;
  while (!done()) {
    if (Clock::now() > until) {
      ADD_FAILURE() << "waited in vain: " << what;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

Crew::Crew(std::size_t workers, std::vector<std::string> command,
           const std::vector<std::string>& environment)
    : members_(workers) {
  std::random_device random;
  const std::string name = fmt::format("{:08x}{:08x}", random(), random());
  for (std::size_t r = 0; r < workers; ++r) {
    std::vector<std::string> variables = environment;
    variables.push_back(fmt::format("STARLING_RANK={}", r));
    variables.push_back(fmt::format("STARLING_SIZE={}", workers));
    variables.push_back(fmt::format("STARLING_MEET=unix:@starling-test-{}", name));
    variables.push_back(fmt::format("STARLING_SECRET={}", name));
    std::array<int, 2> pipe{};
    EXPECT_EQ(pipe2(pipe.data(), O_CLOEXEC), 0);
    fcntl(pipe[0], F_SETFL, O_NONBLOCK);
    members_[r].file = pipe[0];
    members_[r].pid = fork();
    if (members_[r].pid == 0) {
      become(std::move(command), std::move(variables), pipe[1]);
    }
    close(pipe[1]);
  }
}

Crew::~Crew() {
  for (Member& member : members_) {
    if (member.pid > 0) {
      kill(member.pid, SIGKILL);
      waitpid(member.pid, nullptr, 0);
    }
    close(member.file);
  }
}

void Crew::signal(std::size_t worker, int signal) {
  ASSERT_GT(members_[worker].pid, 0) << "worker " << worker << " has ended: " << output(worker);
  kill(members_[worker].pid, signal);
}

void Crew::read(Member& member) {
  std::array<char, 4096> bytes;
  ssize_t got = 0;
  while ((got = ::read(member.file, bytes.data(), bytes.size())) > 0) {
    member.output.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

std::string Crew::output(std::size_t worker) {
  read(members_[worker]);
  return members_[worker].output;
}

void Crew::wait_for(std::size_t worker, const std::string& text, std::chrono::seconds patience) {
  poll_until(
      patience, [&] { return output(worker).find(text) != std::string::npos; },
      fmt::format("'{}' from worker {}; it wrote: {}", text, worker, output(worker)));
}

int Crew::wait(std::size_t worker, std::chrono::seconds patience) {
  Member& member = members_[worker];
  poll_until(
      patience,
      [&] {
        read(member);
        int status = 0;
        if (member.pid > 0 && waitpid(member.pid, &status, WNOHANG) == member.pid) {
          member.pid = -1;
          member.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        return member.pid < 0;
      },
      fmt::format("the end of worker {}", worker));
  read(member);
  return member.code;
}

}  // namespace starling::test
