#include "bench/rivals/team.h"

namespace starling::rivals {
namespace {

constexpr int kSpins = 10'000'000;  // some milliseconds

}  // namespace

Team::Team(int members) {
  for (int member = 1; member < members; ++member) {
    others_.emplace_back([this, member] { follow(member); });
  }
}

Team::~Team() {
  start(nullptr);
  for (std::thread& thread : others_) {
    thread.join();
  }
}

void Team::run(const std::function<void(int)>& work) {
  start(&work);
  work(0);
  while (busy_.load(std::memory_order_acquire) != 0) {
  }
}

void Team::start(const std::function<void(int)>* work) {
  work_ = work;
  busy_.store(static_cast<int>(others_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

void Team::follow(int member) {
  for (int seen = 0;; ++seen) {
    for (int spin = 0; spin < kSpins && round_.load(std::memory_order_acquire) == seen; ++spin) {
    }
    round_.wait(seen, std::memory_order_acquire);
    if (work_ == nullptr) {
      return;
    }
    (*work_)(member);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace starling::rivals
