// starling bench skew as a user sees it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tool/tool.h"

namespace starling::tool {
namespace {

TEST(BenchSkew, OneRowPerSizeAndKind) {
  const Output result =
      run("bench skew --workers 3 --virtual-workers 5 --bytes 64,1K,100K --rounds 3 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 6u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    EXPECT_EQ(row.at("kind"), i < 3 ? "processes" : "virtual");
    EXPECT_EQ(row.at("workers"), i < 3 ? 3 : 5);
    EXPECT_EQ(row.at("calls"), 3 * row.at("workers").get<int>());
    EXPECT_EQ(row.at("bytes"), std::vector({64, 1000, 100'000})[i % 3]);
    // In virtual time worker 0 waits for the last one exactly; processes depend on the machine.
    EXPECT_GT(row.at("blocking_seconds").get<double>(), i < 3 ? 0 : 1e-3);
    EXPECT_GT(row.at("wait_avoiding_seconds").get<double>(), 0);
    EXPECT_GT(row.at("wait_avoiding_p50_seconds").get<double>(), i < 3 ? 0 : -1);
    EXPECT_DOUBLE_EQ(
        row.at("ratio").get<double>(),
        row.at("blocking_seconds").get<double>() / row.at("wait_avoiding_seconds").get<double>());
  }
}

// In virtual time, where nothing depends on the machine.
TEST(BenchSkew, ThirtyTwoWorkersCallTwentyTimesShorter) {
  const Output result = run("bench skew --workers 0 --virtual-workers 32 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 5u);
  for (const auto& row : rows) {
    EXPECT_GE(row.at("ratio").get<double>(), 20) << row;
    EXPECT_GT(row.at("blocking_seconds").get<double>(), 15.5e-3) << row;
  }
}

TEST(BenchSkew, TheTableSaysWhatItIs) {
  const Output result = run("bench skew --workers 2 --virtual-workers 2 --bytes 1K --rounds 2");
  ASSERT_EQ(result.code, 0) << result.err;
  for (const std::string word : {"processes", "virtual", "blocking", "wait-avoiding", "x "}) {
    EXPECT_TRUE(has(result.out, word)) << result.out;
  }
}

TEST(BenchSkew, WrongInputIsRefused) {
  expect_refused("bench skew --bytes 3", {"--bytes", "'3'"});
  expect_refused("bench skew --rounds 0", {"--rounds"});
  expect_refused("bench skew --workers 5000", {"5000"});
  expect_refused("bench skew --spacing -1", {"--spacing"});
  expect_refused("bench skwe", {"unknown command 'skwe'", "skew"});
}

}  // namespace
}  // namespace starling::tool
