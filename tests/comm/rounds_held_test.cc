// Starling's own rule on the virtual network: the sum of the held models changes by updates alone,
// every gradient counts once and in full, and nobody waits for a straggler before the age bound.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/comm/audit.h"

namespace starling::test {
namespace {

using comm::TriggerOptions;
using When = TriggerOptions::When;

void expect_all_ended(const Trained& trained) {
  for (std::size_t r = 0; r < trained.ends.size(); ++r) {
    EXPECT_EQ(text_of(trained.ends[r]), "") << "worker " << r;
  }
}

TriggerOptions need(std::int64_t age_bound) {
  TriggerOptions options;
  options.when = When::Need;
  options.age_bound = age_bound;
  return options;
}

Crew starling(std::size_t workers, std::uint64_t seed, std::int64_t age_bound = 9) {
  Crew crew;
  crew.algorithm = "starling";
  crew.schedule = "groups";
  crew.workers = workers;
  crew.step.trigger = need(age_bound);
  crew.network.seed = seed;
  return crew;
}

// Steps without updates after the last one, so that all models have become their mean when the
// first worker leaves: all updates are in version T + A, `rounds` make it even, and who is last
// lags by no more than that.
std::uint64_t quiet_steps(std::int64_t age_bound, std::uint64_t rounds) {
  return static_cast<std::uint64_t>(age_bound) + 2 * rounds + 1;
}

TEST(RoundsHeld, TheGoldenCase) {
  Crew crew = starling(4, 1);
  crew.group_size = 2;
  crew.step.steps = 2;
  crew.initial = [](Rank r, std::size_t) { return std::vector<float>{10, 1, 30, 40}[r.index()]; };
  crew.change = [](Rank r, Step s, std::size_t, float) {
    return r == Rank{1} && s == Step{0} ? 1.0F : 0.0F;
  };
  const Trained t = train(crew);
  expect_all_ended(t);
  EXPECT_EQ(t.models[0][0], 20.25F);
  EXPECT_EQ(t.models[1][0], 20.75F);
  EXPECT_EQ(t.models[2][0], 20.25F);
  EXPECT_EQ(t.models[3][0], 20.75F);
}

// Small whole numbers, groups of 2 and 4 and few versions: every average is exact. If any update or
// any part of one were lost or counted twice, in any interleaving, the mean would not be this one.
TEST(RoundsHeld, TheSumChangesByUpdatesAlone) {
  constexpr std::uint64_t kSteps = 4;
  std::size_t most_copies = 0;
  const std::uint64_t runs = versions_or(400);
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    const std::int64_t age_bound = 1 + static_cast<std::int64_t>(seed % 3);
    const bool eight = seed % 2 == 0;
    Crew crew = starling(eight ? 8 : 4, seed, age_bound);
    crew.group_size = 2;
    crew.elements = 2;
    crew.network.jitter = 5e-4;
    crew.step.steps = kSteps + quiet_steps(age_bound, eight ? 3 : 2);
    crew.pace = seed % 5 == 0 ? heavy_tails(seed) : jitter(seed, 0.9);
    const Random draws(seed, 99);
    const auto start = [&](Rank r, std::size_t i) {
      return static_cast<float>(draws.below(16, 2 * r.index() + i));
    };
    const auto update = [&](Rank r, Step s, std::size_t i) {
      const auto step = static_cast<std::uint64_t>(s.value);
      return step >= kSteps
                 ? 0.0F
                 : static_cast<float>(draws.below(8, 1000 + 100 * r.index() + 2 * step + i));
    };
    crew.initial = start;
    crew.change = [&](Rank r, Step s, std::size_t i, float) { return update(r, s, i); };
    const Trained t = train(crew);
    expect_all_ended(t);
    for (std::size_t i = 0; i < crew.elements; ++i) {
      float sum = 0;
      for (std::uint32_t r = 0; r < crew.workers; ++r) {
        sum += start(Rank{r}, i);
        for (std::uint64_t s = 0; s < kSteps; ++s) {
          sum += update(Rank{r}, Step{static_cast<std::int64_t>(s)}, i);
        }
      }
      for (std::uint32_t r = 0; r < crew.workers; ++r) {
        ASSERT_EQ(t.models[r][i], sum / static_cast<float>(crew.workers))
            << "seed " << seed << ", worker " << r;
      }
    }
    for (const comm::StepReport& report : t.reports) {
      most_copies = std::max(most_copies, report.copies);
    }
  }
  // Updates have fallen inside rounds.
  EXPECT_EQ(most_copies, 3U);
}

// Every gradient of worker i adds 1 to coordinate i.
TEST(RoundsHeld, EveryGradientCountsOnceAndInFull) {
  for (const std::uint32_t workers : {5U, 8U, 16U}) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      Crew crew = starling(workers, seed);
      crew.elements = workers;
      crew.network.jitter = 2e-4;
      crew.pace = seed % 3 == 0   ? jitter(seed, 0.9)
                  : seed % 3 == 1 ? stragglers(seed, 5)
                                  : heavy_tails(seed);
      const auto gradients = [](Rank r) { return 60 + 5 * static_cast<std::int64_t>(r.value); };
      crew.change = [&](Rank r, Step s, std::size_t i, float) {
        return i == r.index() && s.value < gradients(r) ? 1.0F : 0.0F;
      };
      crew.step.steps = static_cast<std::uint64_t>(gradients(Rank{workers})) + quiet_steps(9, 15);
      SCOPED_TRACE(testing::Message() << workers << " workers, seed " << seed);
      const Trained t = train(crew);
      expect_all_ended(t);
      for (std::uint32_t i = 0; i < workers; ++i) {
        double weight = 0;
        for (const std::vector<float>& model : t.models) {
          weight += static_cast<double>(model[i]);
        }
        EXPECT_NEAR(weight, static_cast<double>(gradients(Rank{i})), 0.01) << "worker " << i;
      }
    }
  }
}

// Groups, pairs, neighbours on both sides or ahead: what a worker gives it takes back elsewhere.
// All take a last step without an update, and leave one after the other when nothing is under way.
TEST(RoundsHeld, EveryScheduleKeepsTheSum) {
  for (const char* schedule : {"aer", "complete", "ring", "base-k", "exponential",
                               "ring-neighbours", "pairs", "push", "fixed-groups"}) {
    for (const std::uint32_t workers : {5U, 8U}) {
      constexpr std::int64_t kSteps = 40;
      Crew crew = starling(workers, workers);
      crew.schedule = schedule;
      crew.elements = workers;
      crew.network.jitter = 2e-4;
      crew.step.steps = kSteps + 1;
      crew.pace = [](Rank r, Step s) {
        return s.value == kSteps ? 1 + 0.1 * r.value : stragglers(4, 5)(r, s);
      };
      crew.change = [](Rank r, Step s, std::size_t i, float) {
        return i == r.index() && s.value < kSteps ? 1.0F : 0.0F;
      };
      SCOPED_TRACE(testing::Message() << schedule << ", " << workers << " workers");
      const Trained t = train(crew);
      expect_all_ended(t);
      EXPECT_GT(t.total().stale, 10U);
      for (std::uint32_t i = 0; i < workers; ++i) {
        double weight = 0;
        for (const std::vector<float>& model : t.models) {
          weight += static_cast<double>(model[i]);
        }
        EXPECT_NEAR(weight, static_cast<double>(kSteps), 1e-3) << "worker " << i;
      }
    }
  }
}

// What the mean gains per step when every gradient is 1, between two steps far from the start.
double progress(Crew crew, std::uint32_t first, std::uint32_t last) {
  constexpr std::int64_t kFrom = 100;
  constexpr std::int64_t kTo = 200;
  std::map<std::int64_t, double> sums;
  crew.step.steps = kTo + 20;
  crew.change = [=](Rank r, Step, std::size_t, float) {
    return r.value >= first && r.value < last ? 1.0F : 0.0F;
  };
  crew.after_step = [&](Rank r, Step s, Toy& toy, comm::Engine&) {
    if (r.value >= first && r.value < last) {
      sums[s.value] += static_cast<double>(toy.values()[0]);
    }
  };
  expect_all_ended(train(crew));
  return (sums[kTo] - sums[kFrom]) / static_cast<double>(kTo - kFrom) / (last - first);
}

// The first version holds the initial models: they are there before anybody has taken a step.
TEST(RoundsHeld, RunsWithEveryTrigger) {
  for (const char* algorithm : {"starling", "ad-psgd"}) {
    for (const When when :
         {When::All, When::First, When::OneSide, When::Initiator, When::Quorum, When::Need}) {
      Crew crew = starling(5, 3);
      crew.algorithm = algorithm;
      crew.schedule = crew.algorithm == "starling" ? "groups" : "pairs";
      crew.step.trigger->when = when;
      crew.step.trigger->quorum = 3;
      crew.step.steps = 30;
      crew.network.jitter = 2e-4;
      crew.pace = jitter(3);
      const Trained t = train(crew);
      SCOPED_TRACE(testing::Message() << algorithm << ", trigger " << static_cast<int>(when));
      expect_all_ended(t);
      EXPECT_GE(t.total().rounds, 5U * 20U);
    }
  }
}

TEST(RoundsHeld, ProgressIsThatOfEveryGradient) {
  Crew crew = starling(8, 3);
  crew.group_size = 4;
  EXPECT_NEAR(progress(crew, 0, 8), 1, 1e-6);
  crew.pace = jitter(3, 0.2);
  EXPECT_NEAR(progress(crew, 0, 8), 1, 0.02);
}

// The paper's rule when everyone is late by one version: x' = (S w + x + a) / (S + 1) with w of the
// version before gives (S + 1) / (2 S + 1) of the progress. With trigger `first` somebody is always
// fresh; so two groups that never mix, of which the first comes half a step earlier and starts the
// versions of both.
TEST(RoundsHeld, ThePapersRuleLosesProgressWhenAllAreLate) {
  for (const std::uint32_t size : {2U, 4U}) {
    Crew crew;
    crew.algorithm = "wagma";
    crew.schedule = "fixed-groups";
    crew.workers = 2 * std::size_t{size};
    crew.group_size = size;
    crew.network.ports.latency = 1e-9;  // the half step remains one
    crew.pace = [=](Rank r, Step s) { return r.value >= size && s == Step{0} ? 1.5e-3 : 1e-3; };
    const double part = (size + 1.0) / (2.0 * size + 1);
    EXPECT_NEAR(progress(crew, size, 2 * size), part, 1e-4) << "groups of " << size;
    crew.step.trigger = TriggerOptions{.when = When::All};
    EXPECT_NEAR(progress(crew, size, 2 * size), 1, 1e-4) << "groups of " << size;
  }
}

// --- The age bound -----------------------------------------------------------------------------

TEST(RoundsHeld, NobodyWaitsForAStragglerBeforeTheAgeBound) {
  for (const std::int64_t age_bound : {2, 9}) {
    SCOPED_TRACE(testing::Message() << "age bound " << age_bound);
    Crew crew = starling(4, 1, age_bound);
    crew.group_size = 4;
    crew.step.steps = 3 * static_cast<std::uint64_t>(age_bound);
    // Worker 2 takes half a second, the others a millisecond.
    crew.pace = [](Rank r, Step) { return r == Rank{2} ? 0.5 : 1e-3; };
    const Trained t = train(crew);
    expect_all_ended(t);
    std::int64_t oldest = 0;
    for (std::uint32_t r = 0; r < 4; ++r) {
      for (const comm::Outcome& outcome : t.rounds_of(Rank{r})) {
        for (const Step updates : outcome.steps) {
          oldest = std::max(oldest, static_cast<std::int64_t>(outcome.version) - updates.value);
        }
      }
      // Its n-th update lets version A + n start.
      for (const comm::PickUp& row : t.pick_ups_of(Rank{r})) {
        if (r == 2 || row.step.value <= age_bound) {
          EXPECT_LT(seconds(row.waited), 1e-3) << "worker " << r << ", step " << row.step.value;
        } else {
          EXPECT_GT(seconds(row.waited), 0.4) << "worker " << r << ", step " << row.step.value;
        }
      }
    }
    EXPECT_EQ(oldest, age_bound);
  }
}

TEST(RoundsHeld, ContributionsAreNeverOlderThanTheAgeBound) {
  for (const std::int64_t age_bound : {2, 9}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Crew crew = starling(seed % 2 == 0 ? 16 : 5, seed, age_bound);
      crew.step.steps = 60;
      crew.network.jitter = 1e-4;
      crew.pace = heavy_tails(seed);
      const Trained t = train(crew);
      expect_all_ended(t);
      for (std::uint32_t r = 0; r < crew.workers; ++r) {
        for (const comm::Outcome& outcome : t.rounds_of(Rank{r})) {
          for (std::size_t m = 0; m < outcome.steps.size(); ++m) {
            const auto version = static_cast<std::int64_t>(outcome.version);
            EXPECT_LE(version - outcome.steps[m].value, age_bound);
            EXPECT_LE(outcome.steps[m].value, version) << "worker " << outcome.members[m].value;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace starling::test
