// The rows of the table of algorithms on the virtual network: each by what is particular to it,
// small cases by hand, and the memory that each needs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "starling/comm/snapshots.h"
#include "tests/comm/audit.h"

namespace starling::test {
namespace {

using When = comm::TriggerOptions::When;

Crew row(std::string algorithm, std::size_t workers, std::uint64_t steps) {
  Crew crew;
  crew.algorithm = std::move(algorithm);
  crew.workers = workers;
  crew.step.steps = steps;
  return crew;
}

Trained trained(const Crew& crew) {
  Trained t = train(crew);
  for (std::size_t r = 0; r < t.ends.size(); ++r) {
    EXPECT_EQ(text_of(t.ends[r]), "") << "worker " << r;
  }
  return t;
}

std::vector<float> firsts(const Trained& t) {
  std::vector<float> values;
  for (const std::vector<float>& model : t.models) {
    values.push_back(model[0]);
  }
  return values;
}

float noise(Rank r, Step s, std::size_t i) {
  return static_cast<float>(
      Random(8).stream(r.value).normal(1000 * i + static_cast<std::uint64_t>(s.value)));
}

// --- Gradients ---------------------------------------------------------------------------------

TEST(RoundsRows, AllReduceKeepsOneModel) {
  for (const std::size_t workers : {5U, 8U, 16U}) {
    Crew crew = row("all-reduce", workers, 20);
    crew.elements = 33;
    crew.network.jitter = 1e-3;
    crew.pace = stragglers(1);
    crew.change = [](Rank r, Step s, std::size_t i, float x) {
      return noise(r, s, i) - 0.1F * (x - static_cast<float>(r.index()));
    };
    std::map<Step, std::vector<std::vector<float>>> after;
    crew.after_step = [&](Rank, Step s, Toy& toy, comm::Engine&) {
      after[s].push_back(toy.values());
    };
    trained(crew);
    EXPECT_EQ(after.size(), 20U);
    for (const auto& [step, models] : after) {
      for (const std::vector<float>& model : models) {
        EXPECT_EQ(std::memcmp(model.data(), models[0].data(), model.size() * sizeof(float)), 0)
            << workers << " workers, step " << step.value;
      }
    }
  }
}

TEST(RoundsRows, AllReduceByHand) {
  Crew crew = row("all-reduce", 4, 2);
  crew.change = [](Rank r, Step, std::size_t, float x) {
    return static_cast<float>(r.index()) - x;
  };
  // The mean of 0, 1, 2, 3 less the model: 1.5, then 0.
  EXPECT_EQ(firsts(trained(crew)), std::vector<float>(4, 1.5F));
}

// Gradients that were missed are added to the next, and none counts twice: the results that a
// worker has seen hold every gradient up to the last that its owner contributed once, and no later
// one.
TEST(RoundsRows, EagerLosesNoGradientAndCountsNoneTwice) {
  for (const When when : {When::First, When::Initiator, When::Quorum}) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      AuditCrew c;
      c.workers = seed % 2 == 0 ? 8 : 5;
      c.schedule = "complete";
      c.accumulate = true;
      c.rounds.trigger.when = when;
      c.rounds.trigger.quorum = 3;
      c.rounds.trigger.seed = seed;
      c.network.seed = seed;
      c.network.jitter = 3e-4;
      c.engine.chunk = 64;
      c.steps = 60;
      c.pace = seed % 3 == 0 ? jitter(seed) : seed % 3 == 1 ? stragglers(seed) : heavy_tails(seed);
      c.writing = [](Rank, Step) { return 1e-4; };
      SCOPED_TRACE(testing::Message() << "trigger " << static_cast<int>(when) << ", seed " << seed);
      const Audited a = audit(c);
      expect_clean(a);
      std::size_t missed = 0;
      for (std::size_t r = 0; r < c.workers; ++r) {
        std::vector<std::int64_t> last(c.workers, -1);
        for (const comm::Outcome& outcome : a.outcomes[r]) {
          for (std::size_t m = 0; m < outcome.steps.size(); ++m) {
            std::int64_t& known = last[outcome.members[m].index()];
            missed += outcome.steps[m].value > known + 1 ? 1 : 0;
            known = std::max(known, outcome.steps[m].value);
          }
        }
        for (std::size_t i = 0; i < c.workers; ++i) {
          for (std::uint64_t s = 0; s < c.steps; ++s) {
            EXPECT_EQ(a.gathered[r][i * c.steps + s],
                      static_cast<std::int64_t>(s) <= last[i] ? 1 : 0)
                << "step " << s << " of worker " << i << " on worker " << r;
          }
        }
      }
      EXPECT_TRUE(missed > 0 || when != When::Initiator) << "nobody was ever two steps late";
    }
  }
}

// The round is interrupted after the next gradient has been published: both are in the next one.
TEST(RoundsRows, AGradientOfAnInterruptedRoundIsContributedAgain) {
  sim::Cluster cluster(sim::ClusterOptions{});
  comm::SnapshotOptions options;
  options.shape.elements = 1;
  options.accumulate = true;
  comm::Snapshots snapshots(cluster.engine(Rank{0}), options);
  const auto publish = [&](float value, std::int64_t step) {
    *reinterpret_cast<float*>(snapshots.write().blob.data) = value;
    snapshots.publish(Step{step});
  };
  const auto contributed = [&] {
    const comm::Contribution::Pass pass = snapshots.begin();
    return *reinterpret_cast<const float*>(pass.in.blob.data);
  };
  publish(0, comm::kInitial.value);
  publish(1, 0);
  EXPECT_EQ(contributed(), 1);
  publish(2, 1);
  snapshots.drop();
  EXPECT_EQ(contributed(), 3);
  snapshots.drop();
  EXPECT_EQ(contributed(), 3);
  publish(4, 2);
  snapshots.drop();
  publish(8, 3);
  EXPECT_EQ(contributed(), 15);
}

// --- Models ------------------------------------------------------------------------------------

// x' = mean of x and both neighbours + U(x): (9+0+3)/3 - 0, (0+3+6)/3 - 1.5, …
TEST(RoundsRows, NeighboursOnARingByHand) {
  Crew crew = row("d-psgd", 4, 1);
  crew.initial = [](Rank r, std::size_t) { return 3 * static_cast<float>(r.index()); };
  crew.change = [](Rank, Step, std::size_t, float x) { return -0.5F * x; };
  const std::vector<float> values = firsts(trained(crew));
  const std::vector<float> due = {4, 1.5F, 3, 0.5F};
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_NEAR(values[r], due[r], 1e-6) << "worker " << r;
  }
}

// x' = mean + U(x), the update being that of the own model before it was mixed.
TEST(RoundsRows, DecentralizedAdamByHand) {
  Crew crew = row("dadam", 4, 1);
  crew.schedule = "complete";
  crew.initial = [](Rank r, std::size_t) { return 4 * static_cast<float>(r.index()); };
  crew.change = [](Rank, Step, std::size_t, float x) { return -0.5F * x; };
  EXPECT_EQ(firsts(trained(crew)), std::vector<float>({6, 4, 2, 0}));
  // One peer at a time: pairs along the ring, {0,1},{2,3} then {3,0},{1,2}.
  crew.schedule = "ring";
  crew.step.steps = 2;
  // After one: 2 - 0, 2 - 2, 10 - 4, 10 - 6. After two: (4+2)/2 - 1, (0+6)/2 - 0, 3 - 3, 3 - 2.
  EXPECT_EQ(firsts(trained(crew)), std::vector<float>({2, 3, 0, 1}));
}

TEST(RoundsRows, LocalStepsAverageEveryPeriod) {
  Crew crew = row("local-sgd", 4, 7);
  crew.step.sync_period = 3;
  crew.change = [](Rank r, Step, std::size_t, float) { return static_cast<float>(2 * r.index()); };
  crew.pace = jitter(2);
  std::map<Step, std::vector<float>> after;
  crew.after_step = [&](Rank r, Step s, Toy& toy, comm::Engine&) {
    after[s].resize(4);
    after[s][r.index()] = toy.values()[0];
  };
  const Trained t = trained(crew);
  EXPECT_EQ(after[Step{1}], std::vector<float>({0, 4, 8, 12}));
  EXPECT_EQ(after[Step{2}], std::vector<float>({9, 9, 9, 9}));
  EXPECT_EQ(after[Step{4}], std::vector<float>({9, 13, 17, 21}));
  EXPECT_EQ(after[Step{5}], std::vector<float>({18, 18, 18, 18}));
  EXPECT_EQ(after[Step{6}], std::vector<float>({18, 20, 22, 24}));
  for (const comm::LedgerTotals& totals : t.totals) {
    EXPECT_EQ(totals.rounds, 2U);
  }
}

TEST(RoundsRows, PushWeightsKeepTheirSumAndModelsFindTheMean) {
  for (const std::string algorithm : {"sgp", "overlapped-sgp"}) {
    for (const std::uint32_t workers : {5U, 8U, 16U}) {
      Crew crew = row(algorithm, workers, 60);
      crew.pace = jitter(workers);
      crew.network.jitter = 1e-4;
      crew.initial = [](Rank r, std::size_t) { return static_cast<float>(r.index() * r.index()); };
      const Trained t = trained(crew);
      SCOPED_TRACE(testing::Message() << algorithm << ", " << workers << " workers");
      std::map<comm::Version, double> weights;
      std::map<comm::Version, std::size_t> ended;
      double mean = 0;
      for (std::uint32_t r = 0; r < workers; ++r) {
        for (const comm::Outcome& outcome : t.rounds_of(Rank{r})) {
          weights[outcome.version] += outcome.is_void ? 0 : outcome.push_weight;
          ended[outcome.version] += outcome.is_void ? 0 : 1;
        }
        mean += static_cast<double>(r * r) / workers;
      }
      std::size_t complete = 0;
      for (const auto& [version, weight] : weights) {
        if (ended[version] == workers) {  // the last ones may be void where others have left
          EXPECT_NEAR(weight, workers, 1e-9) << "version " << version;
          ++complete;
        }
      }
      EXPECT_GT(complete, 50U);
      for (const float value : firsts(t)) {
        EXPECT_NEAR(value, mean, 1e-3);
      }
    }
  }
}

// Small whole numbers, halved a few times: exact. All take a last step without an update, and leave
// one after the other when nothing is under way any more.
TEST(RoundsRows, PairsKeepTheirSum) {
  constexpr std::int64_t kSteps = 8;
  std::uint64_t stale = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Crew crew = row("ad-psgd", seed % 2 == 0 ? 8 : 5, kSteps + 1);
    crew.network.seed = seed;
    crew.network.jitter = 5e-4;
    crew.pace = [&](Rank r, Step s) {
      return s.value == kSteps ? 1 + 0.1 * r.value : jitter(seed, 0.9)(r, s);
    };
    crew.initial = [](Rank r, std::size_t) { return static_cast<float>(r.index()); };
    crew.change = [](Rank r, Step s, std::size_t, float) {
      return s.value < kSteps ? static_cast<float>(r.index() % 3) : 0.0F;
    };
    const Trained t = trained(crew);
    float sum = 0;
    float due = 0;
    for (std::size_t r = 0; r < crew.workers; ++r) {
      sum += t.models[r][0];
      due += static_cast<float>(r + kSteps * (r % 3));
    }
    EXPECT_EQ(sum, due) << "seed " << seed;
    stale += t.total().stale;
  }
  EXPECT_GT(stale, 1000U);
}

// --- Memory ------------------------------------------------------------------------------------

// Copies of the model beside the application's own, under stragglers.
TEST(RoundsRows, CopiesOfTheModel) {
  struct Most {
    const char* algorithm;
    std::size_t copies;
  };
  const std::vector<Most> rows = {{"all-reduce", 2}, {"local-sgd", 2},  {"d-psgd", 2},
                                  {"dadam", 2},      {"accum-adam", 2}, {"sgp", 2},
                                  {"wagma", 5},      {"eager-solo", 5}, {"eager-majority", 5},
                                  {"starling", 3},   {"ad-psgd", 3}};
  for (const Most& most : rows) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      Crew crew = row(most.algorithm, seed % 2 == 0 ? 8 : 5, 60);
      crew.network.seed = seed;
      crew.network.jitter = 1e-3;
      crew.pace = seed < 2 ? stragglers(seed) : heavy_tails(seed);
      crew.step.sync_period =
          std::string_view(most.algorithm) == "wagma" ? std::optional(10U) : std::nullopt;
      for (const comm::StepReport& report : trained(crew).reports) {
        EXPECT_LE(report.copies, most.copies) << most.algorithm << ", seed " << seed;
        EXPECT_GE(report.copies, 2U) << most.algorithm << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace starling::test
