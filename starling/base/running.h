// Running<T>: a Task that has been started and goes on by itself; can be asked whether it is done,
// awaited, or cancelled. This is where a tree of coroutines begins: it holds the Cancellation that
// all of them see.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "starling/base/cancellation.h"
#include "starling/base/error.h"
#include "starling/base/task.h"

namespace starling {

template <typename T = void>
class [[nodiscard]] Running {
 public:
  // Runs `task` up to its first suspension.
  explicit Running(Task<T> task) : state_(std::make_unique<State>(std::move(task))) {
    state_->root = drive(*state_).handle;
    state_->root.resume();
  }
  Running(Running&&) noexcept = default;
  // What this ran goes with `other`.
  Running& operator=(Running&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Running() {
    if (state_ && state_->root) {
      state_->root.destroy();
    }
  }

  bool done() const { return state_->done; }
  // The value, or the exception. Requires: done().
  T take() {
    check(done(), "asked for the result of something that still runs");
    if (state_->error) {
      std::rethrow_exception(state_->error);
    }
    if constexpr (!std::is_void_v<T>) {
      return std::move(*state_->value);
    }
  }
  // Why it failed, or null. Requires: done().
  std::exception_ptr error() const { return state_->error; }

  void cancel(std::exception_ptr reason) { state_->cancellation.request(std::move(reason)); }

  // Awaiting hands a cancellation of the awaiting coroutine on, and still waits for the end.
  struct Awaiter : Cancellation::Subscriber {
    explicit Awaiter(Running& r) : running(r) {}
    Running& running;
    bool await_ready() const { return running.done(); }
    template <typename Promise>
    void await_suspend(std::coroutine_handle<Promise> awaiting) {
      running.state_->waiter = awaiting;
      if (awaiting.promise().cancellation != nullptr) {
        awaiting.promise().cancellation->subscribe(*this);
      }
    }
    T await_resume() { return running.take(); }
    void on_cancel(const std::exception_ptr& reason) override { running.cancel(reason); }
  };
  Awaiter operator co_await() { return Awaiter(*this); }

 private:
  using Value = std::conditional_t<std::is_void_v<T>, char, T>;

  struct State {
    explicit State(Task<T> t) : task(std::move(t)) {}
    Task<T> task;
    Cancellation cancellation;
    std::optional<Value> value;
    std::exception_ptr error;
    bool done = false;
    std::coroutine_handle<> waiter = std::noop_coroutine();
    std::coroutine_handle<> root;
  };

  // The coroutine at the root: it awaits the task, keeps the result and wakes the waiter. Its frame
  // rests after the end until ~Running destroys it, which the waiter may do at once.
  struct Root {
    struct promise_type {
      State& state;
      Cancellation* cancellation;
      explicit promise_type(State& s) : state(s), cancellation(&s.cancellation) {}

      struct Finish {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(
            std::coroutine_handle<promise_type> root) const noexcept {
          State& ended = root.promise().state;
          ended.done = true;
          return ended.waiter;
        }
        void await_resume() const noexcept {}
      };
      Root get_return_object() {
        return {std::coroutine_handle<promise_type>::from_promise(*this)};
      }
      std::suspend_always initial_suspend() const noexcept { return {}; }
      Finish final_suspend() const noexcept { return {}; }
      void return_void() const noexcept {}
      void unhandled_exception() const noexcept { std::terminate(); }
    };
    std::coroutine_handle<> handle;
  };

  static Root drive(State& state) {
    try {
      if constexpr (std::is_void_v<T>) {
        co_await state.task;
      } else {
        state.value.emplace(co_await state.task);
      }
    } catch (...) {
      state.error = std::current_exception();
    }
  }

  std::unique_ptr<State> state_;
};

}  // namespace starling
