// Asking a coroutine to stop. A Cancellation belongs to whoever started the work; it travels down
// through every co_await by itself (see task.h), and whatever is awaited at the bottom subscribes.
// Cancelling is a request with a reason: the awaited operation ends in its own time (a buffer in
// flight first has to come back) and then throws the reason. One thread; no locks.
#pragma once

#include <exception>

namespace starling {

class Cancellation {
 public:
  // Told once when cancellation is requested. Leaves the list when destroyed.
  class Subscriber {
   public:
    Subscriber() = default;
    Subscriber(const Subscriber&) = delete;
    Subscriber& operator=(const Subscriber&) = delete;
    virtual ~Subscriber() { leave(); }
    // Must not throw, and must not resume a coroutine from inside: put it on a ready queue.
    virtual void on_cancel(const std::exception_ptr& reason) = 0;
    void leave();

   private:
    friend class Cancellation;
    Cancellation* source_ = nullptr;
    Subscriber* previous_ = nullptr;
    Subscriber* next_ = nullptr;
  };

  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;
  ~Cancellation();

  bool requested() const { return reason_ != nullptr; }
  const std::exception_ptr& reason() const { return reason_; }

  // The first request counts; later ones change nothing.
  void request(std::exception_ptr reason);

  // Requires: the subscriber is in no list. Told at once if cancellation was already requested.
  void subscribe(Subscriber& subscriber);

 private:
  std::exception_ptr reason_;
  Subscriber* first_ = nullptr;
};

}  // namespace starling
