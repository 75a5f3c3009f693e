// Where the application's thread and the engine's meet. The application computes steps at its own
// pace; the coroutine of steps, on the engine, waits for them and hands over what is to be done on
// the application's thread (updates), which does it while it waits for its step to end.
//
// Threads: each part says whose. One application thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>

#include "starling/base/task.h"
#include "starling/base/time.h"
#include "starling/comm/signal.h"
#include "starling/comm/workers.h"

namespace starling::train {

class Desk {
 public:
  explicit Desk(comm::Workers& workers) : workers_(workers) {}
  // On the application's thread; waits for what was posted to the engine's.
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  // --- The engine's side ---
  // Before the first and after the last of the following.
  void open(comm::Engine& engine);
  void close(std::exception_ptr error);
  // All before step `step` is done; whether the application begins it.
  Task<bool> more(std::uint64_t step);
  // Until the application has computed step `step`.
  Task<void> computed(std::uint64_t step);
  // Runs `work` on the application's thread, and goes on when it has run; throws what it throws.
  Task<void> run(std::function<void()> work);

  // --- The application's side ---
  // Step `step` begins, and this waits until the engine expects it to be computed.
  void begin(std::uint64_t step);
  // Step `step` has been computed.
  void say_computed(std::uint64_t step);
  // There are no more steps.
  void say_finished();
  // There are no more steps, though more were promised: the engine's side ends by Error{Cancelled}.
  void say_given_up();
  // Works for the engine until all before step `step` is done, or nothing more will be. Throws what
  // ended the engine's side. How long it had nothing to do.
  Duration serve_until(std::uint64_t step);
  // The same until close().
  Duration serve_to_the_end();
  // Throws what ended the engine's side, if something has.
  void throw_if_failed();

 private:
  struct Work {
    std::function<void()> run;
    std::coroutine_handle<> waiting;
    std::exception_ptr error;
  };
  struct Call;
  Duration serve(const std::function<bool()>& done);
  void post_signal(std::function<void()> change);

  comm::Workers& workers_;
  // The engine's.
  std::optional<comm::Signal> news_;
  std::uint64_t begun_ = 0;     // steps
  std::uint64_t computed_ = 0;  // steps
  bool finished_ = false;
  bool given_up_ = false;
  // Both sides.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work*> works_;
  std::uint64_t awaited_ = 0;   // one more than the step that the engine is ready to begin
  std::uint64_t expected_ = 0;  // one more than the step that it expects to be computed
  bool closed_ = false;
  std::exception_ptr failure_;
  std::atomic<std::uint64_t> version_{0};  // of the above, to look at without the mutex
};

}  // namespace starling::train
