// What a program runs apart from its engine, on a worker of its own.
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/connect.h"

namespace starling::comm {
namespace {

std::unique_ptr<Workers> alone() {
  return connect([](const char*) { return std::optional<std::string>(); }, ConnectOptions{});
}

TEST(ApplicationThread, WorkRunsElsewhereAndTheProgramGoesOnOnTheEngine) {
  const auto workers = alone();
  std::vector<std::thread::id> seen;
  workers->run([&](Engine&) -> Task<void> {
    seen.push_back(std::this_thread::get_id());
    co_await workers->apart([&] { seen.push_back(std::this_thread::get_id()); });
    seen.push_back(std::this_thread::get_id());
    co_await workers->apart([&] { seen.push_back(std::this_thread::get_id()); });
  });
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_EQ(seen[1], seen[3]);
  EXPECT_NE(seen[0], seen[1]);
  EXPECT_NE(seen[1], std::this_thread::get_id());
}

TEST(ApplicationThread, WhatWorkThrowsReachesTheProgram) {
  const auto workers = alone();
  const auto caught = workers->run([&](Engine&) -> Task<std::string> {
    std::string text;
    try {
      co_await workers->apart([] { throw std::runtime_error("no such batch"); });
    } catch (const std::runtime_error& e) {
      text = e.what();
    }
    co_await workers->apart([&] { text += ", and it goes on"; });
    co_return text;
  });
  EXPECT_EQ(caught, "no such batch, and it goes on");
}

TEST(ApplicationThread, TheEngineGoesOnMeanwhile) {
  const auto workers = alone();
  std::promise<void> started;
  std::promise<void> release;
  auto computing = workers->start([&](Engine&) -> Task<void> {
    co_await workers->apart([&] {
      started.set_value();
      release.get_future().get();
    });
  });
  started.get_future().get();
  // A program that needs the engine ends while the function runs.
  workers->run([](Engine& engine) -> Task<void> {
    co_await engine.sleep_for(std::chrono::microseconds(1));
  });
  EXPECT_EQ(computing.wait_for(Seconds(0)), std::future_status::timeout);
  release.set_value();
  computing.get();
}

TEST(ApplicationThread, OneAtATimeInTheOrderTheyCame) {
  constexpr int kPrograms = 4;
  constexpr int kRounds = 500;
  const auto workers = alone();
  int count = 0;  // no lock: the thread sanitizer looks on
  const auto program = [&](Engine&) -> Task<void> {
    for (int i = 0; i < kRounds; ++i) {
      co_await workers->apart([&] { ++count; });
    }
  };
  std::vector<std::future<void>> ends;
  for (int i = 0; i < kPrograms; ++i) {
    ends.push_back(workers->start(program));
  }
  for (std::future<void>& end : ends) {
    end.get();
  }
  EXPECT_EQ(count, kPrograms * kRounds);
}

TEST(ApplicationThread, TheEndWaitsForWhatRuns) {
  for (int i = 0; i < 20; ++i) {
    auto owner = alone();
    Workers& workers = *owner;
    std::promise<void> started;
    int begun = 0;
    int ended = 0;
    // For ever: that it is cancelled ends it.
    auto computing = workers.start([&](Engine&) -> Task<void> {
      while (true) {
        co_await workers.apart([&] {
          if (++begun == 1) {
            started.set_value();
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          ++ended;
        });
      }
    });
    started.get_future().get();
    owner.reset();
    EXPECT_EQ(begun, ended);
    EXPECT_GE(ended, 1);
    try {
      computing.get();
      ADD_FAILURE() << "it ended by itself";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::Cancelled);
    }
  }
}

}  // namespace
}  // namespace starling::comm
