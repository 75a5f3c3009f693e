#include "starling/base/json_line.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

constexpr std::string_view kText = R"({
  "a": [1, 2,
        {"x": "tricky \" } ] text", "y": [true,
          null]},
        4],
  "b": {"c": {
    "d": -1.5e3
  }},
  "e": "last"
}
)";

TEST(JsonLine, OfEveryPlace) {
  EXPECT_EQ(json_line(kText, ""), 1U);
  EXPECT_EQ(json_line(kText, "/a"), 2U);
  EXPECT_EQ(json_line(kText, "/a/1"), 2U);
  EXPECT_EQ(json_line(kText, "/a/2"), 3U);
  EXPECT_EQ(json_line(kText, "/a/2/x"), 3U);
  EXPECT_EQ(json_line(kText, "/a/2/y/1"), 4U);
  EXPECT_EQ(json_line(kText, "/a/3"), 5U);
  EXPECT_EQ(json_line(kText, "/b/c/d"), 7U);
  EXPECT_EQ(json_line(kText, "/e"), 9U);
}

TEST(JsonLine, WhatIsNotThereIsWhereItWouldBe) {
  EXPECT_EQ(json_line(kText, "/b/c/nothing"), 6U);
  EXPECT_EQ(json_line(kText, "/a/9"), 2U);
  EXPECT_EQ(json_line(kText, "/e/deeper"), 9U);
  EXPECT_EQ(json_line("", "/a"), 1U);
  EXPECT_EQ(json_line("[", "/0/b"), 1U);
}

}  // namespace
}  // namespace starling
