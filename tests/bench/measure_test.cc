// How rivals are measured, on one that does as it is told.
#include "bench/rivals/measure.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace starling::rivals {
namespace {

// A single rank, whose method 0 is slow and whose result is right until call `wrong_from`.
class Actor : public Rival {
 public:
  explicit Actor(int wrong_from) : wrong_from_(wrong_from) {}

  int rank() const override { return 0; }
  std::vector<std::string> methods() const override { return {"slow", "quick"}; }
  void prepare(std::size_t floats) override { floats_ = floats; }
  void barrier() override {}
  void all_reduce(std::size_t method) override {
    spoiled_ = false;
    ++calls_;
    if (method == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  }
  void spoil() override { spoiled_ = true; }
  bool correct() const override { return !spoiled_ && calls_ < wrong_from_; }
  void combine(std::vector<double>&, Combine) override {}

  int calls() const { return calls_; }
  std::size_t floats() const { return floats_; }

 private:
  int wrong_from_;
  int calls_ = 0;
  bool spoiled_ = false;
  std::size_t floats_ = 0;
};

constexpr int kNever = 1'000'000;

TEST(Measure, TheFasterMethodIsMeasured) {
  Actor actor(kNever);
  testing::internal::CaptureStdout();
  EXPECT_EQ(
      measure({.sizes = {{.bytes = 40, .repetitions = 7}}, .warmup = 2, .options = {}}, actor), 0);
  const auto line = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(line["method"], "quick");
  EXPECT_EQ(line["bytes"], 40);
  EXPECT_EQ(line["seconds"].size(), 7);
  EXPECT_EQ(actor.floats(), 10);
  EXPECT_GE(actor.calls(), 2 + 7);
}

TEST(Measure, AWrongSumInTheLastRepetitionFails) {
  const Plan plan{.sizes = {{.bytes = 40, .repetitions = 7}}, .warmup = 0, .options = {}};
  Actor right(kNever);
  testing::internal::CaptureStdout();
  EXPECT_EQ(measure(plan, right), 0);
  testing::internal::GetCapturedStdout();

  Actor wrong(right.calls());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(measure(plan, wrong), 1);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "rank 0: a wrong sum of 40 bytes\n");
}

}  // namespace
}  // namespace starling::rivals
