#include "starling/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace starling {
namespace {

TEST(Error, CheckNamesThePlaceOfTheCaller) {
  try {
    check(1 + 1 == 3, "one and one are {}", 2);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Bug);
    EXPECT_NE(std::string(e.what()).find("one and one are 2"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("error_test.cc:"), std::string::npos);
  }
}

TEST(Error, RequireSpeaksToTheUser) {
  try {
    require(false, "rank {} is outside 0 … {}", 7, 3);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Input);
    EXPECT_STREQ(e.what(), "rank 7 is outside 0 … 3");
  }
}

TEST(Error, ChecksThatHoldDoNothing) {
  EXPECT_NO_THROW(check(true, "never"));
  EXPECT_NO_THROW(require(true, "never"));
}

TEST(Error, EveryCodeHasAName) {
  for (ErrorCode code : {ErrorCode::Bug, ErrorCode::Input, ErrorCode::Mismatch, ErrorCode::Lost,
                         ErrorCode::Stalled, ErrorCode::Cancelled, ErrorCode::Environment}) {
    EXPECT_NE(name_of(code), "unknown");
  }
}

}  // namespace
}  // namespace starling
