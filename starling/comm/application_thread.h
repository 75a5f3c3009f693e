// The thread on which a worker's application computes, while its engine runs on another: coroutines
// of the engine hand it functions, one after the other, and go on, on the engine's thread, when
// theirs has run. Started when it is first used.
//
// Threads: the engine's alone; `wake` is called from the application's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "starling/base/task.h"

namespace starling::comm {

class ApplicationThread {
 public:
  // `wake` is told when a function has run: then take_ready() has something.
  explicit ApplicationThread(std::function<void()> wake) : wake_(std::move(wake)) {}
  // Requires: not busy().
  ~ApplicationThread();
  ApplicationThread(const ApplicationThread&) = delete;
  ApplicationThread& operator=(const ApplicationThread&) = delete;

  // Runs `work` and goes on when it has run; throws what it throws. Once end() was called, throws
  // Error{Cancelled}: at once, or when `work` has run.
  Task<void> run(std::function<void()> work);

  // The coroutines that can go on.
  std::vector<std::coroutine_handle<>> take_ready();
  // Whether a function still runs, or its coroutine has not been taken.
  bool busy() const { return under_way_ > 0; }
  // Nothing more is run.
  void end() { ending_ = true; }

 private:
  // A function under way; lives in the frame of its coroutine.
  struct Call {
    ApplicationThread& thread;
    std::function<void()> work;
    std::coroutine_handle<> coroutine;
    std::exception_ptr error;

    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiting) {
      coroutine = waiting;
      thread.hand_over(*this);
    }
    void await_resume() const {}
  };
  void hand_over(Call& call);
  void loop();
  Call* next();

  std::function<void()> wake_;
  bool ending_ = false;        // the engine's
  std::size_t under_way_ = 0;  // the engine's
  std::mutex mutex_;           // guards the following
  std::condition_variable changed_;
  std::deque<Call*> calls_;
  std::vector<std::coroutine_handle<>> ready_;
  bool stopping_ = false;
  std::atomic<bool> news_{false};  // to look at without the mutex: calls_ or stopping_ has changed
  std::thread thread_;
};

}  // namespace starling::comm
