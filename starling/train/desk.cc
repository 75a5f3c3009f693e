#include "starling/train/desk.h"

#include <chrono>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/linger.h"

namespace starling::train {

using SteadyClock = std::chrono::steady_clock;

Desk::~Desk() {
  // The engine's side may have ended before it heard what was said last.
  workers_.run([](comm::Engine&) -> Task<void> { co_return; });
}

// --- The engine's side ---------------------------------------------------------------------------

void Desk::open(comm::Engine& engine) { news_.emplace(engine); }

void Desk::close(std::exception_ptr error) {
  news_.reset();
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    failure_ = std::move(error);
    ++version_;
  }
  changed_.notify_one();
}

Task<bool> Desk::more(std::uint64_t step) {
  {
    const std::lock_guard lock(mutex_);
    awaited_ = step + 1;
    ++version_;
  }
  changed_.notify_one();
  while (begun_ <= step && !finished_) {
    co_await *news_;
  }
  if (begun_ <= step && given_up_) {
    throw Error(ErrorCode::Cancelled, fmt::format("steps from {} on were given up", step));
  }
  co_return begun_ > step;
}

Task<void> Desk::computed(std::uint64_t step) {
  if (computed_ <= step) {
    {
      const std::lock_guard lock(mutex_);
      expected_ = step + 1;
      ++version_;
    }
    changed_.notify_one();
  }
  while (computed_ <= step && !finished_) {
    co_await *news_;
  }
  if (computed_ <= step) {
    throw Error(ErrorCode::Cancelled, fmt::format("step {} was given up", step));
  }
}

// A function under way; lives in the frame of its coroutine.
struct Desk::Call {
  Desk& desk;
  Work& work;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    work.waiting = waiting;
    {
      const std::lock_guard lock(desk.mutex_);
      desk.works_.push_back(&work);
      ++desk.version_;
    }
    desk.changed_.notify_one();
  }
  void await_resume() const {
    if (work.error) {
      std::rethrow_exception(work.error);
    }
  }
};

Task<void> Desk::run(std::function<void()> function) {
  Work work{std::move(function), nullptr, nullptr};
  Call call{*this, work};
  co_await call;
}

// --- The application's side ----------------------------------------------------------------------

void Desk::post_signal(std::function<void()> change) {
  workers_.post([this, change = std::move(change)](comm::Engine&) {
    if (news_) {
      change();
      news_->raise();
    }
  });
}

void Desk::begin(std::uint64_t step) {
  post_signal([this, step] { begun_ = step + 1; });
  serve([this, step] { return expected_ > step; });
}

void Desk::say_computed(std::uint64_t step) {
  post_signal([this, step] { begun_ = computed_ = step + 1; });
}

void Desk::say_finished() {
  post_signal([this] { finished_ = true; });
}

void Desk::say_given_up() {
  post_signal([this] { finished_ = given_up_ = true; });
}

Duration Desk::serve_until(std::uint64_t step) {
  return serve([this, step] { return awaited_ > step; });
}

Duration Desk::serve_to_the_end() {
  return serve([] { return false; });
}

void Desk::throw_if_failed() {
  const std::lock_guard lock(mutex_);
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

Duration Desk::serve(const std::function<bool()>& done) {
  Duration idle(0);
  std::unique_lock lock(mutex_);
  while (true) {
    if (!works_.empty()) {
      Work* work = works_.front();
      works_.pop_front();
      lock.unlock();
      try {
        work->run();
      } catch (...) {
        work->error = std::current_exception();
      }
      workers_.post(
          [waiting = work->waiting](comm::Engine& engine) { engine.make_ready(waiting); });
      lock.lock();
      continue;
    }
    if (closed_) {
      if (failure_) {
        std::rethrow_exception(failure_);
      }
      return idle;
    }
    if (done()) {
      return idle;
    }
    const std::uint64_t seen = version_;
    lock.unlock();
    const auto since = SteadyClock::now();
    comm::linger([&] { return version_ != seen; });
    lock.lock();
    changed_.wait(lock, [&] { return version_ != seen; });
    idle += std::chrono::duration_cast<Duration>(SteadyClock::now() - since);
  }
}

}  // namespace starling::train
