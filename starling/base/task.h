// Task<T>: a coroutine that runs when awaited, once, and hands its value or exception to whoever
// awaits it. The awaiting coroutine's Cancellation is passed down, so that a request to stop
// reaches whatever is awaited at the bottom without being named on the way.
//
// A task that ends without ever waiting hands its result straight back to the loop that awaits it,
// on any compiler and at any optimisation: the stack grows with the depth of calls only.
//
// A Task owns its frame. Destroying a suspended one destroys what it awaits; do that only when
// nothing outside (a posted receive, a timer) still refers to it. Not thread-safe: one engine, one
// thread.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "starling/base/cancellation.h"
#include "starling/base/error.h"

namespace starling {

template <typename T>
class Task;

namespace internal {

struct PromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  Cancellation* cancellation = nullptr;
  std::exception_ptr error;
  bool starting = false;  // still inside the await_suspend that started it

  struct Return {
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) const noexcept {
      if (done.promise().starting) {
        return std::noop_coroutine();
      }
      return done.promise().continuation;
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  Return final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }
};

template <typename T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  void return_value(T result) { value.emplace(std::move(result)); }
  T take() {
    if (error) {
      std::rethrow_exception(error);
    }
    return std::move(*value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() const noexcept {}
  void take() const {
    if (error) {
      std::rethrow_exception(error);
    }
  }
};

}  // namespace internal

template <typename T = void>
class [[nodiscard]] Task {
 public:
  using Value = T;
  using promise_type = internal::Promise<T>;

  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (frame_) {
      frame_.destroy();
    }
  }

  bool await_ready() const noexcept { return false; }
  // False, that is, go on at once, if the task has ended by itself.
  template <typename Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    auto& promise = frame_.promise();
    promise.continuation = awaiting;
    promise.cancellation = awaiting.promise().cancellation;
    promise.starting = true;
    frame_.resume();
    promise.starting = false;
    return !frame_.done();
  }
  T await_resume() { return frame_.promise().take(); }

 private:
  friend promise_type;
  explicit Task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

// co_await current_cancellation(): the Cancellation this coroutine runs under, or null. Does not
// suspend.
struct CurrentCancellation {
  Cancellation* cancellation = nullptr;
  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
    cancellation = coroutine.promise().cancellation;
    return false;
  }
  Cancellation* await_resume() const noexcept { return cancellation; }
};
inline CurrentCancellation current_cancellation() { return {}; }

namespace internal {

template <typename T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}

inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

}  // namespace internal
}  // namespace starling
