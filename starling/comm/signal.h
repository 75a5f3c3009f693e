// Something that coroutines of one engine wait for: "it may have changed, look again".
//     while (!there()) co_await changed;
// raise() wakes all that wait now. Ends early, with an exception, by cancellation. The owner raises
// it when its engine is closed; what waits has to look.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>
#include <vector>

#include "starling/base/cancellation.h"
#include "starling/comm/engine.h"

namespace starling::comm {

class Signal {
 public:
  explicit Signal(Engine& engine) : engine_(engine) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void raise() {
    for (Waiter* waiter : std::exchange(waiters_, {})) {
      waiter->wake();
    }
  }

  class Waiter final : private Cancellation::Subscriber {
   public:
    explicit Waiter(Signal& signal) : signal_(signal) {}
    bool await_ready() const { return false; }
    template <typename Promise>
    void await_suspend(std::coroutine_handle<Promise> coroutine) {
      coroutine_ = coroutine;
      signal_.waiters_.push_back(this);
      if (coroutine.promise().cancellation != nullptr) {
        coroutine.promise().cancellation->subscribe(*this);
      }
    }
    void await_resume() const {
      if (reason_) {
        std::rethrow_exception(reason_);
      }
    }

   private:
    friend class Signal;
    void wake() {
      leave();
      signal_.engine_.make_ready(coroutine_);
    }
    void on_cancel(const std::exception_ptr& reason) override {
      reason_ = reason;
      std::erase(signal_.waiters_, this);
      wake();
    }
    Signal& signal_;
    std::coroutine_handle<> coroutine_;
    std::exception_ptr reason_;
  };
  Waiter operator co_await() { return Waiter(*this); }

 private:
  Engine& engine_;
  std::vector<Waiter*> waiters_;
};

}  // namespace starling::comm
