// A run that continues another: steps and versions go on where they were. Rows in which everyone
// waits for everyone end with the same bits as a run in one piece.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tests/comm/toy.h"

namespace starling::test {
namespace {

struct Row {
  std::string algorithm;
  std::string schedule;
  bool streams = false;
};

Crew crew_of(const Row& row, std::size_t workers, std::uint64_t steps) {
  Crew crew;
  crew.algorithm = row.algorithm;
  crew.schedule = row.schedule;
  crew.streams = row.streams;
  crew.workers = workers;
  crew.elements = 13;
  crew.step.steps = steps;
  crew.step.bucket = 4 * sizeof(float);
  crew.network.jitter = 2e-4;
  crew.pace = jitter(workers);
  crew.change = [](Rank r, Step s, std::size_t i, float x) {
    const Random draws = Random(3).stream(r.value);
    const double noise = draws.normal(100 * static_cast<std::uint64_t>(s.value) + i);
    return 0.1F * (static_cast<float>(noise) + static_cast<float>(r.index()) - x);
  };
  return crew;
}

Crew continued(Crew crew, const Trained& before, std::uint64_t steps) {
  crew.step.first = std::exchange(crew.step.steps, steps);
  crew.initial = [&before](Rank r, std::size_t i) { return before.models[r.index()][i]; };
  return crew;
}

void expect_good_ends(const Trained& t) {
  for (std::size_t r = 0; r < t.ends.size(); ++r) {
    EXPECT_EQ(text_of(t.ends[r]), "") << "worker " << r;
  }
}

TEST(RoundsContinue, RowsThatWaitForEveryoneEndWithTheSameBits) {
  const std::vector<Row> rows = {
      {"all-reduce", ""},
      {"all-reduce", "", true},
      {"local-sgd", ""},
      {"d-psgd", ""},
      {"sgp", ""},
      {"overlapped-sgp", ""},
      {"dadam", "aer"},
      {"dadam", "aer", true},
      {"dadam", "exponential", true},
      {"accum-adam", "complete"},
      {"dadam", "ring", true},
  };
  for (const Row& row : rows) {
    for (const std::size_t workers : {2U, 5U, 8U}) {
      for (const std::uint64_t at : {1U, 6U, 7U}) {
        SCOPED_TRACE(testing::Message() << row.algorithm << " " << row.schedule << ", " << workers
                                        << " workers, continued at " << at);
        Crew crew = crew_of(row, workers, 14);
        crew.step.sync_period = row.algorithm == "local-sgd" ? std::optional(3U) : std::nullopt;
        const Trained whole = train(crew);
        expect_good_ends(whole);
        crew.step.steps = at;
        const Trained before = train(crew);
        expect_good_ends(before);
        const Trained after = train(continued(crew, before, 14));
        expect_good_ends(after);
        EXPECT_EQ(after.models, whole.models);
      }
    }
  }
}

// Versions are those of the whole run, each once; a sync is where it would have been, and what is
// contributed before the first step is as fresh as the run before left it.
TEST(RoundsContinue, RowsThatDoNotWaitGoOnCounting) {
  for (const char* algorithm : {"wagma", "starling", "ad-psgd", "eager-solo", "eager-majority"}) {
    SCOPED_TRACE(algorithm);
    Crew crew = crew_of({algorithm, ""}, 6, 1000);
    if (crew.algorithm == "wagma") {
      crew.step.sync_period = 5;
    }
    crew.step.steps = 20;
    crew.pace = stragglers(4);
    const Trained before = train(crew);
    expect_good_ends(before);
    const Trained after = train(continued(crew, before, 50));
    expect_good_ends(after);
    for (std::uint32_t r = 0; r < 6; ++r) {
      comm::Version next = 20;
      for (const comm::Outcome& outcome : after.rounds_of(Rank{r})) {
        EXPECT_EQ(outcome.version, next++);
        EXPECT_EQ(outcome.is_sync, crew.algorithm == "wagma" && (outcome.version + 1) % 5 == 0);
        for (const Step step : outcome.steps) {
          EXPECT_TRUE(step.value >= 19 || step == comm::kInitial || step == comm::kNothing)
              << step.value;
        }
      }
      EXPECT_GE(next, 49U);
    }
  }
}

TEST(RoundsContinue, AWorkerMayDieInARunThatContinues) {
  for (const char* algorithm : {"all-reduce", "dadam", "wagma", "starling"}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(testing::Message() << algorithm << ", seed " << seed);
      Crew crew = crew_of({algorithm, ""}, 5, 40);
      crew.step.first = 15;
      crew.step.sync_period =
          crew.algorithm == "wagma" ? std::optional<std::uint32_t>(4) : std::nullopt;
      const Rank dies{static_cast<std::uint32_t>(seed % 5)};
      crew.faults = {{.at_event = 1 + 97 * seed, .worker = dies}};
      const Trained t = train(crew);
      std::set<comm::Version> seen;
      for (std::uint32_t r = 0; r < 5; ++r) {
        if (Rank{r} == dies) {
          continue;
        }
        EXPECT_EQ(text_of(t.ends[r]), "") << "worker " << r;
        for (const comm::Outcome& outcome : t.rounds_of(Rank{r})) {
          EXPECT_GE(outcome.version, 15U);
          seen.insert(outcome.version);
        }
      }
      EXPECT_GE(seen.size(), 24U);
    }
  }
}

}  // namespace
}  // namespace starling::test
