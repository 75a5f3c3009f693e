#include "starling/base/units.h"

#include <gtest/gtest.h>

#include <string>

#include "starling/base/error.h"
#include "starling/base/time.h"

namespace starling {
namespace {

TEST(Units, ParseBytes) {
  EXPECT_EQ(parse_bytes("0").value, 0u);
  EXPECT_EQ(parse_bytes("4096").value, 4096u);
  EXPECT_EQ(parse_bytes("100M").value, 100'000'000u);
  EXPECT_EQ(parse_bytes("1.5k").value, 1500u);
  EXPECT_EQ(parse_bytes("64 KiB").value, 65536u);
  EXPECT_EQ(parse_bytes("2GB").value, 2'000'000'000u);
  for (const char* wrong : {"", "x", "-1", "5X", "1e30", "M", "1 0 K K", "nan", "inf"}) {
    EXPECT_THROW(parse_bytes(wrong), Error) << wrong;
  }
}

TEST(Units, BytesReadable) {
  EXPECT_EQ(to_string(Bytes{0}), "0 B");
  EXPECT_EQ(to_string(Bytes{999}), "999 B");
  EXPECT_EQ(to_string(Bytes{1000}), "1.0 kB");
  EXPECT_EQ(to_string(Bytes{999'960}), "1.0 MB");
  EXPECT_EQ(to_string(Bytes{104'857'600}), "104.9 MB");
}

TEST(Units, ClocksConvertExactly) {
  EXPECT_EQ(sim_duration(5e-6).count(), 5'000'000);
  EXPECT_EQ(seconds(SimDuration(1'500'000'000'000)), 1.5);
  EXPECT_EQ(std::chrono::duration_cast<Duration>(SimDuration(2000)).count(), 2);
}

}  // namespace
}  // namespace starling
