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

// own + mean of what travelled - what travelled of the own. Bf16 has no 1 + 2^-9: it travels as 1,
// and stays where it is.
TEST(Rounds, WithBf16ModelsMoveByWhatTravelled) {
  constexpr float kLittle = 1.0F / 512;
  for (const std::uint32_t workers : {2U, 4U, 8U}) {
    for (const std::size_t elements : {4U, 3000U}) {
      Crew crew;
      crew.workers = workers;
      crew.group_size = workers;
      crew.elements = elements;
      crew.step.steps = 1;
      crew.step.bf16 = true;
      crew.step.trigger = comm::TriggerOptions{.when = comm::TriggerOptions::When::All};
      crew.initial = [](Rank r, std::size_t) {
        return static_cast<float>(2 * r.value + 1) + (r.value == 0 ? kLittle : 0);
      };
      const Trained t = train(crew);
      expect_all_ended(t);
      const auto mean = static_cast<float>(workers);  // of 1, 3, 5 …
      for (std::uint32_t r = 0; r < workers; ++r) {
        const std::vector<float> wanted(elements, r == 0 ? mean + kLittle : mean);
        EXPECT_EQ(t.models[r], wanted) << "worker " << r << " of " << workers;
      }
    }
  }
}

// Models by step and rank.
using History = std::vector<std::vector<std::vector<float>>>;
History history_of(Crew crew) {
  History history(crew.step.steps, std::vector<std::vector<float>>(crew.workers));
  crew.after_step = [&](Rank r, Step s, Toy& toy, comm::Engine&) {
    history[static_cast<std::size_t>(s.value)][r.index()] = toy.values();
  };
  expect_all_ended(train(std::move(crew)));
  return history;
}

Crew all_fresh(std::size_t workers, std::optional<std::uint32_t> group_size, std::uint64_t steps) {
  Crew crew;
  crew.workers = workers;
  crew.group_size = group_size;
  crew.step.steps = steps;
  crew.step.trigger = comm::TriggerOptions{.when = comm::TriggerOptions::When::All};
  return crew;
}

std::function<float(Rank, std::size_t)> normal_start(std::uint64_t seed) {
  return [random = Random(seed)](Rank r, std::size_t i) {
    return static_cast<float>(random.stream(r.value).normal(i));
  };
}

// Mean over workers and elements of the squared deviation from the mean over workers.
double deviation(const std::vector<std::vector<float>>& models) {
  double sum = 0;
  for (std::size_t i = 0; i < models[0].size(); ++i) {
    double mean = 0;
    for (const auto& model : models) {
      mean += static_cast<double>(model[i]) / static_cast<double>(models.size());
    }
    for (const auto& model : models) {
      sum += (static_cast<double>(model[i]) - mean) * (static_cast<double>(model[i]) - mean);
    }
  }
  return sum / static_cast<double>(models.size() * models[0].size());
}

TEST(Rounds, GroupSumsOfIntegersAreExact) {
  for (const std::uint32_t workers : {5U, 8U, 16U, 64U}) {
    Crew crew = all_fresh(workers, std::nullopt, 1);
    crew.initial = [](Rank r, std::size_t i) { return static_cast<float>(r.index() * 60 + i); };
    const Trained t = train(crew);
    expect_all_ended(t);
    for (std::uint32_t r = 0; r < workers; ++r) {
      const comm::Outcome outcome = t.rounds_of(Rank{r}).at(0);
      float sum = 0;
      for (const Rank member : outcome.members) {
        sum += static_cast<float>(member.index() * 60);
      }
      EXPECT_EQ(t.models[r][0], sum / static_cast<float>(outcome.members.size()))
          << workers << " workers, worker " << r;
    }
  }
}

TEST(Rounds, MembersOfAGroupGetTheSameBits) {
  for (const std::uint32_t workers : {5U, 8U, 16U, 64U}) {
    Crew crew = all_fresh(workers, std::nullopt, 3);
    crew.elements = 37;
    crew.initial = normal_start(workers);
    crew.change = [](Rank r, Step s, std::size_t i, float x) {
      return 0.1F * x + static_cast<float>(Random(7).stream(r.value).normal(100 * i + s.value));
    };
    const Trained t = train(crew);
    expect_all_ended(t);
    const History models = history_of(crew);
    for (std::uint32_t r = 0; r < workers; ++r) {
      for (const comm::Outcome& outcome : t.rounds_of(Rank{r})) {
        for (const Rank member : outcome.members) {
          EXPECT_EQ(models[outcome.version][r], models[outcome.version][member.index()]);
        }
      }
    }
  }
}

TEST(Rounds, WithoutGradientsAllAgreeAfterFewVersions) {
  struct Row {
    std::uint32_t workers;
    std::uint32_t group_size;
    std::size_t versions;
  };
  const std::vector<Row> rows = {{8, 2, 3}, {16, 4, 2}, {64, 8, 2}, {64, 4, 3}, {64, 2, 6}};
  for (const Row& row : rows) {
    Crew crew = all_fresh(row.workers, row.group_size, row.versions + 2);
    crew.elements = 20;
    crew.initial = normal_start(3);
    const History models = history_of(crew);
    EXPECT_GT(deviation(models[row.versions - 2]), 1e-3) << row.workers;
    for (std::size_t v = row.versions - 1; v < row.versions + 2; ++v) {
      EXPECT_LT(deviation(models[v]), 1e-12) << row.workers << " in " << row.group_size;
    }
  }
}

TEST(Rounds, WithoutGradientsPushedModelsAgreeAfterSix) {
  Crew crew;
  crew.algorithm = "sgp";
  crew.workers = 64;
  crew.elements = 20;
  crew.step.steps = 6;
  crew.initial = normal_start(4);
  const History models = history_of(crew);
  EXPECT_GT(deviation(models[4]), 1e-3);
  EXPECT_LT(deviation(models[5]), 1e-12);
}

TEST(Rounds, ARingOfNeighboursAgreesSlowly) {
  Crew crew;
  crew.algorithm = "d-psgd";
  crew.workers = 64;
  crew.elements = 1500;
  crew.step.steps = 12;
  crew.initial = normal_start(5);
  std::vector<std::vector<float>> start(crew.workers, std::vector<float>(crew.elements));
  for (std::uint32_t r = 0; r < crew.workers; ++r) {
    for (std::size_t i = 0; i < crew.elements; ++i) {
      start[r][i] = crew.initial(Rank{r}, i);
    }
  }
  const History models = history_of(crew);
  EXPECT_NEAR(std::sqrt(deviation(models[11]) / deviation(start)), 0.291, 0.02);
}

// Unit noise before every version: what is left between workers is the sum over j >= 1 with S^j < N
// of 1 / S^j - 1 / N; for 64 workers in eights 1/8 - 1/64.
TEST(Rounds, NoiseLeavesTheVarianceThatGroupsAllow) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Crew crew = all_fresh(64, 8, 22);
    crew.elements = 200;
    crew.change = [seed](Rank r, Step s, std::size_t i, float) {
      const Random draw = Random(seed).stream(r.value);
      return static_cast<float>(draw.normal(1000 * static_cast<std::uint64_t>(s.value) + i));
    };
    const History models = history_of(crew);
    double sum = 0;
    for (std::size_t v = 2; v < 22; ++v) {
      sum += deviation(models[v]) / 20;
    }
    EXPECT_NEAR(sum, 1.0 / 8 - 1.0 / 64, 0.05 * (1.0 / 8 - 1.0 / 64)) << "seed " << seed;
  }
}

// Whoever is activated before its first step contributes its initial weights.
TEST(Rounds, TheFirstContributionOfASleeperIsTheInitialModel) {
  for (const std::uint32_t workers : {5U, 8U, 16U}) {
    Crew crew;
    crew.workers = workers;
    crew.step.steps = 1;
    crew.initial = [](Rank r, std::size_t) { return static_cast<float>(100 + r.index()); };
    crew.change = [](Rank, Step, std::size_t, float) { return 1000.0F; };
    crew.pace = [](Rank r, Step) { return r == Rank{0} ? 1e-3 : 1.0; };
    std::vector<float> after(workers);
    crew.after_step = [&](Rank r, Step, Toy& toy, comm::Engine&) {
      after[r.index()] = toy.values()[0];
    };
    const Trained t = train(crew);
    expect_all_ended(t);
    const comm::Outcome outcome = t.rounds_of(Rank{0}).at(0);
    float sum = 0;
    for (std::size_t m = 0; m < outcome.members.size(); ++m) {
      const bool first = outcome.members[m] == Rank{0};
      EXPECT_EQ(outcome.steps[m], first ? Step{0} : comm::kInitial);
      sum += static_cast<float>(100 + outcome.members[m].index() + (first ? 1000 : 0));
    }
    EXPECT_GT(outcome.members.size(), 1U);
    EXPECT_FLOAT_EQ(after[0], sum / static_cast<float>(outcome.members.size()));
  }
}

// The golden case of the paper's rule: contributions 10, 1 (old; the new one is 2), 30, 40. What
// every worker has after its first step.
std::vector<float> after_a_late_step(bool deterministic) {
  Crew crew;
  crew.group_size = 2;
  crew.step.steps = 2;
  crew.step.deterministic = deterministic;
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
  expect_all_ended(train(crew));
  return after_first;
}

TEST(Rounds, ALateWorkerAddsItsOwnAndDividesBySPlusOne) {
  const std::vector<float> after_first = after_a_late_step(false);
  EXPECT_EQ(after_first[0], 5.5F);
  EXPECT_EQ(after_first[2], 35.0F);
  EXPECT_EQ(after_first[3], 35.0F);
  // Worker 1 sees the newest outcome, that of version 1 (it contributed 1 again, with 35).
  EXPECT_FLOAT_EQ(after_first[1], (1 + 35 + 2) / 3.0F);
}

TEST(Rounds, ADeterministicLateWorkerUsesItsOwnStep) {
  EXPECT_FLOAT_EQ(after_a_late_step(true)[1], 13 / 3.0F);
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

TEST(Rounds, TheReleasedRuleAlwaysDividesBySPlusOne) {
  Crew crew;
  crew.group_size = 2;
  crew.step.steps = 1;
  crew.step.rule = comm::Rule::AlwaysPlusOne;
  crew.initial = [](Rank r, std::size_t) { return static_cast<float>(r.value); };
  const Trained t = train(crew);
  expect_all_ended(t);
  EXPECT_FLOAT_EQ(t.models[0][0], (0 + 1 + 0) / 3.0F);
  EXPECT_FLOAT_EQ(t.models[1][0], (0 + 1 + 1) / 3.0F);
  EXPECT_FLOAT_EQ(t.models[3][0], (2 + 3 + 3) / 3.0F);
}

TEST(Rounds, BucketsChangeNoBits) {
  Crew crew;
  crew.workers = 5;
  crew.elements = 1001;
  crew.step.steps = 8;
  crew.step.sync_period = 4;
  crew.step.trigger = comm::TriggerOptions{.when = comm::TriggerOptions::When::All};
  crew.change = [](Rank r, Step s, std::size_t i, float at) {
    return 0.1F * (static_cast<float>(Random(1).stream(r.value).uniform(i)) - at) +
           static_cast<float>(s.value);
  };
  const Trained whole = train(crew);
  crew.step.bucket = 400;
  const Trained cut = train(crew);
  expect_all_ended(cut);
  EXPECT_EQ(whole.models, cut.models);
}

// Steps of 10 ms that differ by a few per cent: instant activation makes nearly everything stale,
// which a little patience avoids, at little cost.
Crew with_jitter(const std::string& algorithm) {
  Crew crew;
  crew.workers = 16;
  crew.algorithm = algorithm;
  crew.schedule = "groups";
  crew.step.steps = 200;
  crew.pace = [](Rank r, Step s) {
    return 1e-2 *
           (1 + 0.05 * Random(4).stream(r.value).uniform(static_cast<std::uint64_t>(s.value)));
  };
  return crew;
}

TEST(Rounds, LearntGraceMakesContributionsFresh) {
  Crew crew = with_jitter("wagma");
  crew.step.sync_period = 10;
  const Trained instant = train(crew);
  crew.step.trigger = comm::TriggerOptions{.when = comm::TriggerOptions::When::First,
                                           .grace = std::chrono::milliseconds(5),
                                           .learn_grace = true};
  const Trained patient = train(crew);
  expect_all_ended(patient);
  EXPECT_GT(instant.total().stale_fraction(), 0.8);
  EXPECT_LT(patient.total().stale_fraction(), 0.45);
  EXPECT_LT(patient.seconds[0], 1.03 * instant.seconds[0]);
}

TEST(Rounds, WaitingForNeedMakesContributionsFresh) {
  const Trained t = train(with_jitter("starling"));
  expect_all_ended(t);
  EXPECT_LT(t.total().stale_fraction(), 0.1);
  EXPECT_LT(t.seconds[0], 200 * 1e-2 * 1.06);
}

}  // namespace
}  // namespace starling::test
