#include "starling/workload/progress.h"

#include <gtest/gtest.h>

#include <cmath>

namespace starling::workload {
namespace {

TEST(Progress, SaysHowFarItIs) {
  const Progress::State state{
      .step = 100, .loss = 0.4123, .samples_per_second = 12300.4, .stale = 0.031};
  EXPECT_EQ(progress_text(state, 200, 11.2, true),
            "[############------------]  50 %  step 100/200  loss 0.4123  12300 samples/s  "
            "stale 3.1 %  0:12 left");
  EXPECT_EQ(progress_text(state, 200, 3725, false),
            "step 100/200  loss 0.4123  12300 samples/s  stale 3.1 %  1:02:05 left");
}

TEST(Progress, WithoutALoss) {
  const Progress::State state{.step = 4, .loss = std::nan("")};
  EXPECT_EQ(progress_text(state, 4, 0, true),
            "[########################] 100 %  step 4/4  0 samples/s  stale 0.0 %  0:00 left");
}

}  // namespace
}  // namespace starling::workload
