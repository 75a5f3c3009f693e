// starling bench average as a user sees it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tool/tool.h"

namespace starling::tool {
namespace {

TEST(BenchAverage, OneRowPerCaseWithEveryContestant) {
  const Output result =
      run("bench average --workers 1,2 --bytes 1Ki,100K --against mpi,gloo,memory --rounds 1 "
          "--json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("private"), false);
  ASSERT_EQ(json.at("rows").size(), 4u);
  for (const auto& row : json.at("rows")) {
    EXPECT_TRUE(row.at("workers") == 1 || row.at("workers") == 2);
    EXPECT_TRUE(row.at("bytes") == 1024 || row.at("bytes") == 100000);
    for (const std::string name : {"starling", "mpi", "gloo", "memory"}) {
      EXPECT_GT(row.at(name + "_seconds").get<double>(), 0) << name;
      EXPECT_GE(row.at(name + "_p99_seconds"), row.at(name + "_seconds")) << name;
      EXPECT_GT(row.at(name + "_repetitions").get<int>(), 0) << name;
    }
  }
}

TEST(BenchAverage, TheTableNamesThemAll) {
  const Output result =
      run("bench average --workers 2 --bytes 1K --against memory --rounds 1 --private");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "private buffers")) << result.out;
  EXPECT_TRUE(has(result.out, "starling")) << result.out;
  EXPECT_TRUE(has(result.out, "memory")) << result.out;
  EXPECT_FALSE(has(result.out, "gloo")) << result.out;
}

TEST(BenchAverage, WrongInputIsRefused) {
  expect_refused("bench average --against gloom", {"unknown rival 'gloom'", "gloo"});
  expect_refused("bench average --bytes 3", {"--bytes", "'3'"});
  expect_refused("bench average --workers 0", {"--workers"});
  expect_refused("bench average --rounds 0", {"--rounds"});
  expect_refused("bench averag", {"unknown command 'averag'", "average"});
}

}  // namespace
}  // namespace starling::tool
