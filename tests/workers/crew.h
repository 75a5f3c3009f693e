// Real worker processes under a test's control: started with the variables of `starling run`, each
// with its output kept, to be stopped and killed one by one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace starling::test {

class Crew {
 public:
  // `command`: a program and its arguments, the same for all. `environment`: NAME=VALUE, for all.
  Crew(std::size_t workers, std::vector<std::string> command,
       const std::vector<std::string>& environment = {});
  // Kills whoever still runs.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::size_t size() const { return members_.size(); }
  void signal(std::size_t worker, int signal);
  // Waits until that worker's output holds `text`; fails the test after `patience`.
  void wait_for(std::size_t worker, const std::string& text,
                std::chrono::seconds patience = std::chrono::seconds(60));
  // Waits for the end; the exit code, or 128 + the signal. Fails the test after `patience`.
  int wait(std::size_t worker, std::chrono::seconds patience = std::chrono::seconds(60));
  // All that it has written so far, stdout and stderr.
  std::string output(std::size_t worker);

 private:
  struct Member {
    pid_t pid = -1;
    int file = -1;
    std::string output;
    int code = -1;
  };
  void read(Member& member);

  std::vector<Member> members_;
};

}  // namespace starling::test
