// A fixture that runs its cases once on every instruction set that is compiled in and that this
// machine has, so that each is held against the same scalar reference.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string>

namespace starling::kernels {

class EveryTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    ASSERT_EQ(hwy::SupportedTargets(), GetParam());
  }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

inline std::string target_name(const testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

inline auto every_target() { return testing::ValuesIn(hwy::SupportedAndGeneratedTargets()); }

}  // namespace starling::kernels
