#include "starling/workload/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/workload/temporary.h"

namespace starling::workload {
namespace {

using Samples = std::vector<std::uint32_t>;

// What all workers together take in an epoch, sorted.
Samples taken(BatchOptions options, std::uint64_t epoch) {
  Samples all;
  for (std::uint32_t r = 0; r < options.workers; ++r) {
    options.worker = Rank{r};
    const Batches batches(options);
    const std::uint64_t steps = batches.steps_per_epoch();
    for (std::uint64_t step = epoch * steps; step < (epoch + 1) * steps; ++step) {
      EXPECT_EQ(batches.epoch_of(step), epoch);
      const Samples batch = batches.batch(step);
      EXPECT_EQ(batches.samples_before(step) + batch.size(), batches.samples_before(step + 1));
      all.insert(all.end(), batch.begin(), batch.end());
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

bool are_distinct(const Samples& sorted) {
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

TEST(Batches, AnEpochRepeatsNothingWithAnyNumberOfWorkers) {
  for (std::uint32_t workers = 1; workers <= 17; ++workers) {
    for (const std::uint32_t batch : {1u, 3u, 8u}) {
      const Samples all =
          taken({.samples = 1'000, .workers = workers, .batch = batch, .seed = 4}, 2);
      const std::size_t steps = 1'000 / (workers * batch);
      EXPECT_EQ(all.size(), steps * workers * batch);
      EXPECT_TRUE(are_distinct(all)) << workers << " workers, batch " << batch;
      EXPECT_LT(all.back(), 1'000u);
    }
  }
}

TEST(Batches, WhatFillsTheStepsIsCoveredWhole) {
  const Samples all = taken({.samples = 60'000, .workers = 5, .batch = 60, .seed = 1}, 0);
  EXPECT_EQ(all.size(), 60'000u);
  EXPECT_TRUE(are_distinct(all));
}

TEST(Batches, UnevenPartsCoverEverySampleOnce) {
  for (std::uint32_t workers = 1; workers <= 17; ++workers) {
    for (const double uneven : {0.0, 0.5, 3.0}) {
      const Samples all =
          taken({.samples = 1'001, .workers = workers, .batch = 7, .seed = 4, .uneven = uneven}, 1);
      EXPECT_EQ(all.size(), 1'001u) << workers << " workers, uneven " << uneven;
      EXPECT_TRUE(are_distinct(all));
    }
  }
}

TEST(Batches, UnevenWorkersTakeDifferentNumbersOfSteps) {
  const auto steps = [](std::uint32_t r) {
    return Batches({.samples = 6'000, .workers = 4, .worker = Rank{r}, .batch = 10, .uneven = 1})
        .steps_per_epoch();
  };
  EXPECT_EQ(steps(0), 100u);
  EXPECT_EQ(steps(1), 134u);
  EXPECT_EQ(steps(2), 167u);
  EXPECT_EQ(steps(3), 200u);
}

TEST(Batches, EpochsSeedsAndStreamsDiffer) {
  const BatchOptions options{.samples = 6'400, .workers = 2, .batch = 64, .seed = 7};
  const Batches batches(options);
  EXPECT_EQ(batches.steps_per_epoch(), 50u);
  EXPECT_NE(batches.batch(0), batches.batch(50));
  BatchOptions other = options;
  other.seed = 8;
  EXPECT_NE(batches.batch(0), Batches(other).batch(0));
  EXPECT_EQ(batches.batch(123), Batches(options).batch(123));
}

// The samples of a step are the same however they are dealt.
TEST(Batches, AStepDependsOnTheGlobalBatchAlone) {
  const auto step_of_all = [](std::uint32_t workers) {
    Samples all;
    for (std::uint32_t r = 0; r < workers; ++r) {
      const Samples batch = Batches({.samples = 5'000,
                                     .workers = workers,
                                     .worker = Rank{r},
                                     .batch = 48 / workers,
                                     .seed = 3})
                                .batch(200);
      all.insert(all.end(), batch.begin(), batch.end());
    }
    return all;
  };
  EXPECT_EQ(step_of_all(1), step_of_all(4));
  EXPECT_EQ(step_of_all(1), step_of_all(16));
}

// A shuffle that favoured some places would show in where the first batch comes from.
TEST(Batches, TheShuffleIsUniform) {
  std::vector<int> count(100);
  const Batches batches({.samples = 100, .batch = 10, .seed = 11});
  constexpr int kEpochs = 20'000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (const std::uint32_t sample : batches.batch(epoch * batches.steps_per_epoch())) {
      ++count[sample];
    }
  }
  // Binomial: mean 2,000, deviation 42.
  for (const int n : count) {
    EXPECT_NEAR(n, kEpochs / 10, 5 * 43);
  }
}

TEST(Batches, RefusesWhatDoesNotFillAStep) {
  EXPECT_EQ(refusal([] { Batches({.samples = 100, .workers = 4, .batch = 32}); }),
            "4 workers with a batch of 32 need 128 samples for one step; the data set has 100");
  EXPECT_EQ(refusal([] { Batches({.samples = 100, .batch = 0}); }),
            "a batch of 0 samples: at least 1 is needed");
  EXPECT_EQ(refusal([] { Batches({.samples = 2, .workers = 3, .uneven = 0}); }),
            "of 2 samples none is left for worker 0 of 3");
  EXPECT_EQ(refusal([] { Batches({.samples = 2, .uneven = -1}); }),
            "uneven -1: allowed are 0 and more");
}

}  // namespace
}  // namespace starling::workload
