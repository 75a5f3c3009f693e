// Rounds on the virtual network: what is in every sum, in which order, and who waits for whom.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/comm/toy.h"

namespace starling::test {
namespace {

void expect_all_ended(const Trained& trained) {
  for (std::size_t r = 0; r < trained.ends.size(); ++r) {
    EXPECT_EQ(text_of(trained.ends[r]), "") << "worker " << r;
  }
}

TEST(Rounds, AllFreshGivesTheMeanOfTheGroup) {
  Crew crew;
  crew.workers = 4;
  crew.group_size = 2;
  crew.step.steps = 1;
  crew.initial = [](Rank r, std::size_t) { return static_cast<float>(r.value); };
  crew.step.trigger = comm::TriggerOptions{.when = comm::TriggerOptions::When::All};
  const Trained t = train(crew);
  expect_all_ended(t);
  EXPECT_EQ(t.models[0][0], 0.5F);
  EXPECT_EQ(t.models[1][0], 0.5F);
  EXPECT_EQ(t.models[2][0], 2.5F);
  EXPECT_EQ(t.models[3][0], 2.5F);
}

// The golden case of the paper's rule: contributions 10, 1 (old; the new one is 2), 30, 40.
TEST(Rounds, ALateWorkerAddsItsOwnAndDividesBySPlusOne) {
  Crew crew;
  crew.group_size = 2;
  crew.step.steps = 2;
  crew.initial = [](Rank r, std::size_t) { return std::vector<float>{10, 1, 30, 40}[r.index()]; };
  crew.change = [](Rank r, Step s, std::size_t, float) {
    return r == Rank{1} && s == Step{0} ? 1.0F : 0.0F;
  };
  crew.pace = [](Rank r, Step s) { return r == Rank{1} && s == Step{0} ? 0.1 : 1e-2; };
  std::vector<float> after_first(4);
  crew.after_step = [&](Rank r, Step s, Toy& toy, comm::Engine&) {
    if (s == Step{0}) {
      after_first[r.index()] = toy.values()[0];
    }
  };
  const Trained t = train(crew);
  expect_all_ended(t);
  EXPECT_EQ(after_first[0], 5.5F);
  EXPECT_EQ(after_first[2], 35.0F);
  EXPECT_EQ(after_first[3], 35.0F);
  // Worker 1 sees the newest outcome, that of version 1 (it contributed 1 again, with 35).
  EXPECT_FLOAT_EQ(after_first[1], (1 + 35 + 2) / 3.0F);
}

TEST(Rounds, ADeterministicLateWorkerUsesItsOwnStep) {
  Crew crew;
  crew.group_size = 2;
  crew.step.steps = 2;
  crew.step.deterministic = true;
  crew.initial = [](Rank r, std::size_t) { return std::vector<float>{10, 1, 30, 40}[r.index()]; };
  crew.change = [](Rank r, Step s, std::size_t, float) {
    return r == Rank{1} && s == Step{0} ? 1.0F : 0.0F;
  };
  crew.pace = [](Rank r, Step s) { return r == Rank{1} && s == Step{0} ? 0.1 : 1e-2; };
  std::vector<float> after_first(4);
  crew.after_step = [&](Rank r, Step s, Toy& toy, comm::Engine&) {
    if (s == Step{0}) {
      after_first[r.index()] = toy.values()[0];
    }
  };
  const Trained t = train(crew);
  expect_all_ended(t);
  EXPECT_FLOAT_EQ(after_first[1], 13 / 3.0F);
}

// The golden case of Starling's own rule.
TEST(Rounds, HeldModelsKeepTheirSum) {
  Crew crew;
  crew.algorithm = "starling";
  crew.schedule = "groups";
  crew.group_size = 2;
  crew.step.steps = 1;
  crew.initial = [](Rank r, std::size_t) { return std::vector<float>{10, 1, 30, 40}[r.index()]; };
  crew.change = [](Rank r, Step, std::size_t, float) { return r == Rank{1} ? 1.0F : 0.0F; };
  const Trained t = train(crew);
  expect_all_ended(t);
  EXPECT_EQ(t.models[0][0], 5.5F);
  EXPECT_EQ(t.models[1][0], 6.5F);
  EXPECT_EQ(t.models[2][0], 35.0F);
  EXPECT_EQ(t.models[3][0], 35.0F);
}

}  // namespace
}  // namespace starling::test
