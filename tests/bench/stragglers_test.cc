// starling bench stragglers as a user sees it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tool/tool.h"

namespace starling::tool {
namespace {

TEST(BenchStragglers, OneRowPerNumberOfWorkers) {
  const Output result = run(
      "bench stragglers --workers 3 --virtual-workers 4,8 --algorithms wagma,starling --bytes 10K "
      "--steps 10 --step 2 --delay 2 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 3u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("kind"), i == 0 ? "processes" : "virtual");
    EXPECT_EQ(rows[i].at("workers"), std::vector({3, 4, 8})[i]);
    for (const std::string name : {"all-reduce", "wagma", "starling"}) {
      EXPECT_GT(rows[i].at("steps_per_second").at(name).get<double>(), 0) << name;
    }
    EXPECT_EQ(rows[i].at("ratio").at("all-reduce"), 1);
  }
}

// In virtual time, where nothing depends on the machine.
TEST(BenchStragglers, WagmaIsAFifthFasterThanAllReduce) {
  const Output result = run("bench stragglers --workers 0 --virtual-workers 16,64 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) {
    EXPECT_GE(row.at("ratio").at("wagma").get<double>(), 1.2) << row;
    // Every step waits for a straggler.
    EXPECT_LT(row.at("steps_per_second").at("all-reduce").get<double>(), 1 / 0.92) << row;
  }
}

TEST(BenchStragglers, WrongInputIsRefused) {
  expect_refused("bench stragglers --algorithms wagna", {"unknown algorithm 'wagna'", "wagma"});
  expect_refused("bench stragglers --bytes 3", {"--bytes", "'3'"});
  expect_refused("bench stragglers --steps 0", {"--steps"});
  expect_refused("bench stragglers --sync-period 0", {"--sync-period"});
  expect_refused("bench stragglers --delay -5", {"--delay", "-5"});
}

}  // namespace
}  // namespace starling::tool
