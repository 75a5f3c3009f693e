// A few threads that do a piece of work together, again and again, and lose no time between.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace starling::rivals {

// Members wait for work by spinning for some milliseconds, then asleep. The caller of run() is
// member 0; one thread calls.
class Team {
 public:
  explicit Team(int members);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int members() const { return static_cast<int>(others_.size()) + 1; }
  // work(m) on every member m; returns when all are done.
  void run(const std::function<void(int)>& work);

 private:
  void follow(int member);
  void start(const std::function<void(int)>* work);

  // Written before round_ grows, read after.
  const std::function<void(int)>* work_ = nullptr;  // none: the end
  std::atomic<int> round_{0};
  std::atomic<int> busy_{0};  // members other than 0 that are not yet done
  std::vector<std::thread> others_;
};

}  // namespace starling::rivals
