// A run on the virtual network, and the same run computed again from its ledger alone.
#include "starling/comm/replay.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "starling/base/error.h"
#include "tests/comm/toy.h"

namespace starling::test {
namespace {

constexpr std::size_t kElements = 7;

// A quadratic with noise; every number follows from (worker, step, element).
float change(Rank rank, Step step, std::size_t element, float at) {
  const Random draw = Random(11).stream(rank.value).stream(element);
  const auto noise = static_cast<float>(draw.normal(static_cast<std::uint64_t>(step.value)));
  return -0.05F * (at - static_cast<float>(rank.value) + noise);
}

float initial(Rank, std::size_t element) { return static_cast<float>(element) * 0.3F; }

comm::ReplayModel model() {
  return {.elements = kElements,
          .initial = initial,
          .update = [](Rank rank, Step step, std::span<const float> at, std::span<float> into) {
            for (std::size_t i = 0; i < into.size(); ++i) {
              into[i] += change(rank, step, i, at[i]);
            }
          }};
}

Crew crew_of(const std::string& algorithm, std::size_t workers, std::uint64_t seed) {
  Crew crew;
  crew.workers = workers;
  crew.elements = kElements;
  crew.algorithm = algorithm;
  crew.schedule = "groups";
  crew.step.steps = 60;
  crew.network.seed = seed;
  crew.network.jitter = 1e-4;
  crew.change = change;
  crew.initial = initial;
  crew.pace = [seed](Rank r, Step s) {
    const Random draw = Random(seed).stream(r.value);
    const double heavy = draw.uniform(static_cast<std::uint64_t>(s.value) * 2) < 0.05 ? 8 : 1;
    return 1e-3 * heavy * (0.5 + draw.uniform(static_cast<std::uint64_t>(s.value) * 2 + 1));
  };
  return crew;
}

void expect_same_bits(const Trained& trained, bool held, std::size_t workers) {
  const auto models = comm::replay(trained.ledger, {.workers = workers, .held = held}, model());
  for (std::size_t r = 0; r < workers; ++r) {
    if (!trained.ends[r]) {
      EXPECT_EQ(models[r], trained.models[r]) << "worker " << r;
    }
  }
}

TEST(Replay, WagmaComesToTheSameBits) {
  for (const std::size_t workers : {5, 8}) {
    Crew crew = crew_of("wagma", workers, workers);
    crew.step.sync_period = 10;
    const Trained trained = train(crew);
    sim::rethrow_first(trained.ends);
    EXPECT_GT(trained.total().stale, 0U);
    EXPECT_GT(trained.total().late, 0U);
    expect_same_bits(trained, false, workers);
  }
}

TEST(Replay, HeldModelsComeToTheSameBits) {
  for (const std::size_t workers : {5, 8}) {
    const Trained trained = train(crew_of("starling", workers, workers));
    sim::rethrow_first(trained.ends);
    EXPECT_GT(trained.total().stale, 0U);
    expect_same_bits(trained, true, workers);
  }
}

TEST(Replay, ModelsHeldInPairsComeToTheSameBits) {
  for (const std::size_t workers : {5, 8}) {
    Crew crew = crew_of("ad-psgd", workers, workers);
    crew.schedule = "pairs";
    const Trained trained = train(crew);
    sim::rethrow_first(trained.ends);
    EXPECT_GT(trained.total().stale, 0U);
    expect_same_bits(trained, true, workers);
  }
}

TEST(Replay, EagerGradientsComeToTheSameBits) {
  for (const char* algorithm : {"eager-solo", "eager-majority"}) {
    for (const std::size_t workers : {5, 8}) {
      Crew crew = crew_of(algorithm, workers, workers);
      crew.schedule = "complete";
      const Trained trained = train(crew);
      sim::rethrow_first(trained.ends);
      std::size_t accumulated = 0;  // steps that were contributed only with the next
      for (std::uint32_t r = 0; r < workers; ++r) {
        std::int64_t last = -1;
        for (const comm::Outcome& outcome : trained.rounds_of(Rank{r})) {
          accumulated += outcome.own.value > last + 1 ? 1 : 0;
          last = std::max(last, outcome.own.value);
        }
      }
      EXPECT_GT(accumulated, 0U);
      comm::ReplayModel replayed = model();
      replayed.gradient = [](Rank rank, Step step, std::span<const float> at,
                             std::span<float> gradient) {
        for (std::size_t i = 0; i < at.size(); ++i) {
          gradient[i] = change(rank, step, i, at[i]);
        }
      };
      replayed.apply = [](Rank, Step, std::span<const float> mean, std::span<float> into) {
        for (std::size_t i = 0; i < into.size(); ++i) {
          into[i] += mean[i];
        }
      };
      const auto models =
          comm::replay(trained.ledger, {.workers = workers, .gradients = true}, replayed);
      for (std::size_t r = 0; r < workers; ++r) {
        EXPECT_EQ(models[r], trained.models[r]) << algorithm << ", worker " << r;
      }
    }
  }
}

TEST(Replay, ARunWithALostWorkerComesToTheSameBits) {
  std::uint64_t voids = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const bool held = seed % 2 == 1;
    Crew crew = crew_of(held ? "starling" : "wagma", 5, seed);
    crew.step.sync_period = held ? std::nullopt : std::optional<std::uint32_t>(7);
    const std::uint64_t events = train(crew).events;
    crew.faults.push_back({Random(seed).below(events, 1),
                           Rank{static_cast<std::uint32_t>(seed) % 5}, sim::FaultKind::Die});
    const Trained trained = train(crew);
    for (std::size_t r = 0; r < 5; ++r) {
      if (r != seed % 5) {
        ASSERT_EQ(text_of(trained.ends[r]), "") << "seed " << seed << " worker " << r;
      }
    }
    voids += trained.total().voids;
    expect_same_bits(trained, held, 5);
  }
  EXPECT_GT(voids, 0U);
}

TEST(Replay, ALedgerWithAMissingWorkerIsRefused) {
  Trained trained = train(crew_of("wagma", 4, 1));
  std::erase_if(trained.ledger, [](const comm::LedgerRow& row) { return row.worker == Rank{2}; });
  EXPECT_THROW(comm::replay(trained.ledger, {.workers = 4}, model()), Error);
}

TEST(Ledger, ItsFileHoldsEveryRowAlsoBeyondTheRing) {
  const std::string path = testing::TempDir() + "ledger.jsonl";
  comm::Ledger ledger(Rank{3}, false, comm::ledger_file(path));
  for (std::uint64_t v = 0; v < 3000; ++v) {
    comm::Outcome round;
    round.version = v;
    round.own = Step{static_cast<std::int64_t>(v) - (v % 4 == 0 ? 2 : 0)};
    round.is_void = v % 100 == 99;
    ledger.note(round);
  }
  ledger.flush();
  std::ifstream file(path);
  const auto rows = comm::read_ledger(file);
  ASSERT_EQ(rows.size(), 3000U);
  for (std::uint64_t v = 0; v < 3000; ++v) {
    EXPECT_EQ(std::get<comm::Outcome>(rows[v].what).version, v);
    EXPECT_EQ(rows[v].worker, Rank{3});
  }
  EXPECT_EQ(ledger.totals().voids, 30U);
  EXPECT_EQ(ledger.totals().rounds, 2970U);
  EXPECT_EQ(ledger.totals().stale, 750U);
  EXPECT_EQ(ledger.totals().ages.at(2), 750U);
}

TEST(Ledger, AFileThatCannotBeMadeIsNamed) {
  EXPECT_THROW(comm::ledger_file("/nowhere/ledger.jsonl"), Error);
}

TEST(Ledger, WhoeverWantsToKnowGoesOnWithoutItsFile) {
  for (const char* path : {"/nowhere/ledger.jsonl", "/dev/full"}) {
    std::vector<std::string> said;
    comm::Ledger ledger(Rank{0}, false, comm::ledger_file(path, [&](const std::string& why) {
                          said.push_back(why);
                        }));
    for (int flush = 0; flush < 3; ++flush) {
      ledger.note(comm::Outcome{});
      ledger.flush();
    }
    ASSERT_EQ(said.size(), 1U) << path;
    EXPECT_TRUE(said[0].starts_with(fmt::format("cannot write {}: ", path))) << said[0];
    EXPECT_EQ(ledger.totals().rounds, 3U);
  }
}

TEST(Ledger, ALineThatCannotBeReadIsNamed) {
  std::istringstream lines("{\"kind\":\"round\"}\n");
  try {
    comm::read_ledger(lines);
    FAIL() << "it was read";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Input);
    EXPECT_NE(std::string(e.what()).find("line 1 of the ledger"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace starling::test
