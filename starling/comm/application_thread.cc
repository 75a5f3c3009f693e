#include "starling/comm/application_thread.h"

#include "starling/base/error.h"
#include "starling/comm/linger.h"

namespace starling::comm {

ApplicationThread::~ApplicationThread() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      news_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
}

Task<void> ApplicationThread::run(std::function<void()> work) {
  const auto throw_if_ending = [this] {
    if (ending_) {
      throw Error(ErrorCode::Cancelled, "the worker ends: its application goes no further");
    }
  };
  throw_if_ending();
  Call call(*this, std::move(work), nullptr, nullptr);
  co_await call;
  if (call.error) {
    std::rethrow_exception(call.error);
  }
  throw_if_ending();
}

std::vector<std::coroutine_handle<>> ApplicationThread::take_ready() {
  std::vector<std::coroutine_handle<>> ready;
  if (under_way_ > 0) {
    const std::lock_guard lock(mutex_);
    ready.swap(ready_);
  }
  under_way_ -= ready.size();
  return ready;
}

void ApplicationThread::hand_over(Call& call) {
  ++under_way_;
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(&call);
    news_ = true;
  }
  changed_.notify_one();
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { loop(); });
  }
}

ApplicationThread::Call* ApplicationThread::next() {
  linger([this] { return news_.load(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !calls_.empty() || stopping_; });
  if (calls_.empty()) {
    return nullptr;
  }
  Call* call = calls_.front();
  calls_.pop_front();
  news_ = !calls_.empty() || stopping_;
  return call;
}

void ApplicationThread::loop() {
  while (Call* call = next()) {
    try {
      call->work();
    } catch (...) {
      call->error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(call->coroutine);
    }
    wake_();
  }
}

}  // namespace starling::comm
