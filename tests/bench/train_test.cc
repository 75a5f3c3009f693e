// starling bench train and starling bench overlap as a user sees them. How fast anything is depends
// on the machine: only what is reported is looked at.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tool/tool.h"

namespace starling::tool {
namespace {

TEST(BenchTrain, OneRowPerContestant) {
  const Output result = run(
      "bench train --model mlp --algorithms all-reduce,starling -n 2 --rounds 1 --steps 6 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report.at("workers"), 2);
  EXPECT_EQ(report.at("batch"), 64);
  EXPECT_EQ(report.at("rounds"), 1);
  const auto& rows = report.at("rows");
  ASSERT_EQ(rows.size(), 4u);
  const std::vector<std::string> names = {"ddp", "alone", "all-reduce", "starling"};
  const std::vector<std::size_t> goals = {0, 0, 1, 2};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    EXPECT_EQ(row.at("model"), "mlp");
    EXPECT_EQ(row.at("algorithm"), names[i]);
    EXPECT_EQ(row.at("steps"), 6);
    EXPECT_EQ(row.at("options"), names[i] == "starling" ? "--group-size 2" : "");
    ASSERT_EQ(row.at("by_round").size(), 1u);
    const double rate = row.at("samples_per_second");
    EXPECT_GT(rate, 0);
    EXPECT_DOUBLE_EQ(row.at("step_seconds").get<double>(), 128 / rate);
    EXPECT_DOUBLE_EQ(row.at("of_ddp").get<double>(),
                     rate / rows[0].at("samples_per_second").get<double>());
    EXPECT_DOUBLE_EQ(row.at("of_alone").get<double>(),
                     rate / rows[1].at("samples_per_second").get<double>());
    ASSERT_EQ(row.at("goals").size(), goals[i]);
    for (const auto& goal : row.at("goals")) {
      const double reached = row.at(goal.at("of") == "ddp" ? "of_ddp" : "of_alone");
      EXPECT_DOUBLE_EQ(goal.at("reached").get<double>(), reached);
      EXPECT_EQ(goal.at("met").get<bool>(), reached >= goal.at("at_least").get<double>());
    }
  }
}

TEST(BenchTrain, WrongInputIsRefused) {
  expect_refused("bench train --model mpl", {"--model", "'mpl'", "mlp"});
  expect_refused("bench train --algorithms starlin", {"'starlin'", "starling"});
  expect_refused("bench train --workers 1", {"--workers"});
  expect_refused("bench train --rounds 0", {"--rounds"});
  expect_refused("bench train --steps -3", {"--steps"});
  expect_refused("bench overlap --algorithms dadm", {"'dadm'", "dadam"});
  expect_refused("bench overlap --steps 0", {"--steps"});
}

// Two algorithms that exchange behind the next step, and one that waits for its own.
TEST(BenchOverlap, SaysHowLongStepsAndExchangesTook) {
  const Output result = run(
      "bench overlap -n 2 --algorithms dadam,starling,all-reduce --compute 0.004:0.008 --steps 12 "
      "--rounds 1 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report.at("compute"), "0.004:0.008");
  const auto& rows = report.at("rows");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].at("algorithm"), "alone");
  EXPECT_FALSE(rows[0].contains("in_time"));
  for (const auto& row : rows) {
    EXPECT_GT(row.at("step_seconds").get<double>(), 0.012) << row;
  }
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("steps"), 2 * 12);
    EXPECT_GT(rows[i].at("exchange_seconds").get<double>(), 0);
    EXPECT_GE(rows[i].at("in_time").get<double>(), 0);
    EXPECT_LE(rows[i].at("in_time").get<double>(), 1);
  }
}

TEST(BenchOverlap, DrawsATimeline) {
  const Output result = run("bench overlap -n 2 --algorithms dadam --steps 6 --rounds 1");
  ASSERT_EQ(result.code, 0) << result.err;
  for (const std::string word : {"alone", "dadam: 3 steps of worker 0", "  step      |#",
                                 "  exchange  ", "=", "  waiting"}) {
    EXPECT_TRUE(has(result.out, word)) << word << " is not in\n" << result.out;
  }
}

}  // namespace
}  // namespace starling::tool
