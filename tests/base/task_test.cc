#include "starling/base/task.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "starling/base/running.h"

namespace starling {
namespace {

// What an engine does in small: things that are awaited until somebody sets them, resumed from a
// ready queue.
class Gate {
 public:
  explicit Gate(std::vector<std::coroutine_handle<>>& ready) : ready_(ready) {}

  struct Awaiter : Cancellation::Subscriber {
    explicit Awaiter(Gate& g) : gate(g) {}
    Gate& gate;
    std::coroutine_handle<> waiter;
    std::exception_ptr reason;
    bool await_ready() const { return gate.open_; }
    template <typename Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) {
      waiter = handle;
      gate.awaiters_.push_back(this);
      if (handle.promise().cancellation != nullptr) {
        handle.promise().cancellation->subscribe(*this);
      }
    }
    void await_resume() const {
      if (reason) {
        std::rethrow_exception(reason);
      }
    }
    void on_cancel(const std::exception_ptr& why) override {
      reason = why;
      std::erase(gate.awaiters_, this);
      gate.ready_.push_back(waiter);
    }
  };
  Awaiter operator co_await() { return Awaiter(*this); }

  void open() {
    open_ = true;
    for (Awaiter* a : awaiters_) {
      ready_.push_back(a->waiter);
    }
    awaiters_.clear();
  }

 private:
  bool open_ = false;
  std::vector<Awaiter*> awaiters_;
  std::vector<std::coroutine_handle<>>& ready_;
};

struct Loop {
  std::vector<std::coroutine_handle<>> ready;
  void run() {
    while (!ready.empty()) {
      auto now = std::exchange(ready, {});
      for (auto handle : now) {
        handle.resume();
      }
    }
  }
};

Task<int> add(int a, int b) { co_return a + b; }

Task<int> deep(int levels) {
  if (levels == 0) {
    co_return 0;
  }
  const int below = co_await deep(levels - 1);
  co_return below + 1;
}

Task<int> passes(Gate& gate, int value) {
  co_await gate;
  co_return value;
}

Task<void> throws() {
  co_await add(1, 2);
  throw std::runtime_error("as asked");
}

TEST(Task, ReturnsValues) {
  Running<int> r(add(2, 3));
  ASSERT_TRUE(r.done());
  EXPECT_EQ(r.take(), 5);
}

TEST(Task, ManyLevelsDeep) {
  Running<int> r(deep(1000));
  ASSERT_TRUE(r.done());
  EXPECT_EQ(r.take(), 1000);
}

TEST(Task, ALongLoopDoesNotGrowTheStack) {
  auto loop = []() -> Task<int> {
    int sum = 0;
    for (int i = 0; i < 100000; ++i) {
      sum += co_await add(0, 1);
    }
    co_return sum;
  };
  Running<int> r(loop());
  EXPECT_EQ(r.take(), 100000);
}

TEST(Task, ExceptionsReachWhoAwaits) {
  Running<void> r(throws());
  ASSERT_TRUE(r.done());
  EXPECT_THROW(r.take(), std::runtime_error);
}

TEST(Task, IsLazy) {
  bool ran = false;
  auto body = [](bool& flag) -> Task<void> {
    flag = true;
    co_return;
  };
  {
    Task<void> t = body(ran);
    EXPECT_FALSE(ran);
  }
  EXPECT_FALSE(ran);
}

TEST(Running, SuspendsAndResumes) {
  Loop loop;
  Gate gate(loop.ready);
  Running<int> r(passes(gate, 7));
  EXPECT_FALSE(r.done());
  EXPECT_THROW(r.take(), Error);
  gate.open();
  loop.run();
  ASSERT_TRUE(r.done());
  EXPECT_EQ(r.take(), 7);
}

TEST(Running, CancellationReachesTheBottomThroughAllLevels) {
  Loop loop;
  Gate gate(loop.ready);
  auto outer = [](Gate& g) -> Task<int> { co_return 1 + co_await passes(g, 1); };
  Running<int> r(outer(gate));
  r.cancel(std::make_exception_ptr(Error(ErrorCode::Cancelled, "enough")));
  EXPECT_FALSE(r.done()) << "cancelling asks; the end comes from the ready queue";
  loop.run();
  ASSERT_TRUE(r.done());
  try {
    r.take();
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "enough");
  }
}

TEST(Running, CancelledBeforeItWaits) {
  Loop loop;
  Gate first(loop.ready);
  Gate second(loop.ready);
  auto both = [](Gate& a, Gate& b) -> Task<void> {
    bool cancelled = false;
    try {
      co_await a;
    } catch (const Error&) {
      cancelled = true;
    }
    EXPECT_TRUE(cancelled);
    co_await b;  // does not wait for b either
  };
  Running<void> r(both(first, second));
  r.cancel(std::make_exception_ptr(Error(ErrorCode::Cancelled, "enough")));
  loop.run();
  ASSERT_TRUE(r.done());
  EXPECT_THROW(r.take(), Error);
}

TEST(Running, AwaitedByAnother) {
  Loop loop;
  Gate gate(loop.ready);
  auto parent = [](Gate& g) -> Task<int> {
    Running<int> a(passes(g, 1));
    Running<int> b(passes(g, 2));
    const int x = co_await a;
    const int y = co_await b;
    co_return x + y;
  };
  Running<int> r(parent(gate));
  gate.open();
  loop.run();
  ASSERT_TRUE(r.done());
  EXPECT_EQ(r.take(), 3);
}

TEST(Running, CancellationIsHandedToTheAwaitedOne) {
  Loop loop;
  Gate gate(loop.ready);
  auto parent = [](Gate& g) -> Task<int> {
    Running<int> a(passes(g, 1));
    const int x = co_await a;
    co_return x;
  };
  Running<int> r(parent(gate));
  r.cancel(std::make_exception_ptr(Error(ErrorCode::Cancelled, "enough")));
  loop.run();
  ASSERT_TRUE(r.done());
  EXPECT_THROW(r.take(), Error);
}

TEST(Running, MayBeDroppedWhileSuspended) {
  Loop loop;
  Gate gate(loop.ready);
  {
    Running<int> r(passes(gate, 1));
  }
  SUCCEED();  // asan tells
}

TEST(Cancellation, FirstReasonCountsAndLateSubscribersHearIt) {
  struct Ear : Cancellation::Subscriber {
    int heard = 0;
    void on_cancel(const std::exception_ptr&) override { ++heard; }
  };
  Cancellation source;
  Ear a;
  Ear b;
  Ear gone;
  source.subscribe(a);
  source.subscribe(gone);
  gone.leave();
  const auto first = std::make_exception_ptr(Error(ErrorCode::Cancelled, "first"));
  source.request(first);
  source.request(std::make_exception_ptr(Error(ErrorCode::Cancelled, "second")));
  source.subscribe(b);
  EXPECT_EQ(a.heard, 1);
  EXPECT_EQ(b.heard, 1);
  EXPECT_EQ(gone.heard, 0);
  EXPECT_EQ(source.reason(), first);
}

// Under the address sanitizer: nothing is left behind.
TEST(Running, AssigningOverOneThatHasEndedFreesWhatItWas) {
  const auto nothing = []() -> Task<void> { co_return; };
  std::vector<Running<void>> running;
  for (int i = 0; i < 4; ++i) {
    running.emplace_back(nothing());
  }
  running.erase(running.begin());
  EXPECT_EQ(running.size(), 3U);
  for (const Running<void>& one : running) {
    EXPECT_TRUE(one.done());
  }
}

}  // namespace
}  // namespace starling
