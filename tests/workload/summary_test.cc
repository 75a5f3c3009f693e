#include "starling/workload/summary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace starling::workload {
namespace {

TEST(StepStatistics, QuantilesAndRecentLoss) {
  StepStatistics steps;
  EXPECT_TRUE(std::isnan(steps.recent_loss()));
  for (int i = 1; i <= 100; ++i) {
    steps.add(i, 101 - i);
  }
  EXPECT_DOUBLE_EQ(steps.mean_seconds(), 50.5);
  EXPECT_NEAR(steps.quantile_seconds(0.5), 50.5, 0.5);
  EXPECT_DOUBLE_EQ(steps.quantile_seconds(0), 1);
  EXPECT_DOUBLE_EQ(steps.quantile_seconds(0.99), 99);
  EXPECT_DOUBLE_EQ(steps.recent_loss(), 5.5);  // of the last ten
}

std::vector<double> record(double seconds, double loss, double stale) {
  StepStatistics steps;
  steps.add(seconds, loss);
  train::Totals totals;
  totals.steps = 10;
  totals.bytes = 1000;
  totals.stale_fraction = stale;
  totals.void_rounds = 2;
  return record_of(steps, totals, 10 * seconds);
}

TEST(Summary, PutsWorkersTogether) {
  const auto results = results_of({record(0.1, 1, 0), std::nullopt, record(0.3, 2, 0.5)}, 6000);
  EXPECT_EQ(results["workers"], 3);
  EXPECT_EQ(results["workers_left"], 2);
  EXPECT_EQ(results["lost"], nlohmann::json({1}));
  EXPECT_NEAR(results["train_seconds"], 3, 1e-6);  // the slowest
  EXPECT_NEAR(results["samples_per_second"], 2000, 1e-3);
  EXPECT_NEAR(results["step_seconds"], 0.2, 1e-6);  // the mean
  EXPECT_NEAR(results["step_seconds_p99"], 0.3, 1e-6);
  EXPECT_DOUBLE_EQ(results["train_loss"], 1.5);
  EXPECT_DOUBLE_EQ(results["stale_fraction"], 0.25);
  EXPECT_DOUBLE_EQ(results["void_rounds"], 4);
  EXPECT_DOUBLE_EQ(results["bytes_per_step"], 100);
}

TEST(Summary, NamesTheFilesThatWereLost) {
  const auto record = [](FilesLost lost) { return record_of({}, {}, 1, lost); };
  const auto results = results_of({record({}), record({.metrics = true}), std::nullopt,
                                   record({.metrics = true, .ledger = true})},
                                  100);
  EXPECT_EQ(results["files_lost"],
            nlohmann::json({"metrics-1.jsonl", "metrics-3.jsonl", "ledger-3.jsonl"}));
  EXPECT_EQ(results_of({record({})}, 100)["files_lost"], nlohmann::json::array());
}

TEST(Summary, NoLossIsNull) {
  const auto results = results_of({record(0.1, std::nan(""), 0)}, 100);
  EXPECT_TRUE(results["train_loss"].is_null());
}

}  // namespace
}  // namespace starling::workload
