// Workers die, stop, or are cut off while rounds run, at a random event of the virtual network.
// Whatever happens, survivors go on, every average holds exactly what its ledger row says, and
// every sync is the same on all of them. STARLING_SCHEDULES scales the number of runs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "starling/base/error.h"
#include "tests/comm/toy.h"

namespace starling::test {
namespace {

std::uint64_t schedules(std::uint64_t by_default) {
  const char* text = std::getenv("STARLING_SCHEDULES");
  return text == nullptr ? by_default
                         : std::max<std::uint64_t>(1, std::stoull(text) * by_default / 200);
}

// The contribution of worker r at step s is s + 2 in coordinate r and 0 elsewhere, whatever was
// averaged before; the initial weights are 1 there.
float marker(Rank rank, Step step, std::size_t element) {
  return element == rank.index() ? static_cast<float>(step.value + 2) : 0.0F;
}

struct Watched {
  Trained trained;
  std::map<std::pair<Rank, Step>, std::vector<float>> models;  // after each step
};

Crew marked_crew(const std::string& algorithm, std::size_t workers, std::uint64_t seed) {
  RandomSequence draw(Random(seed).stream(workers));
  Crew crew;
  crew.workers = workers;
  crew.elements = workers;
  crew.algorithm = algorithm;
  crew.step.steps = 40;
  crew.network.seed = seed;
  crew.network.jitter = draw.below(2) == 0 ? 0 : 5e-4 * draw.uniform();
  crew.network.detection = 1e-4 + 1e-2 * draw.uniform();
  crew.network.laziness = draw.below(2) == 0 ? 0 : 1e-4 * draw.uniform();
  crew.hop = draw.below(2) == 0 ? 0 : 2e-4 * draw.uniform();
  crew.network.ports.per_node = 1 + draw.below(3);
  crew.engine.in_shared_memory = draw.below(2) == 0;
  crew.pace = [seed](Rank r, Step s) {
    const Random times = Random(seed).stream(r.value);
    const double heavy = times.uniform(static_cast<std::uint64_t>(s.value) * 2) < 0.05 ? 6 : 1;
    return 1e-3 * heavy * (0.5 + times.uniform(static_cast<std::uint64_t>(s.value) * 2 + 1));
  };
  return crew;
}

Watched watch(Crew crew) {
  Watched watched;
  crew.after_step = [&](Rank r, Step s, Toy& toy, comm::Engine&) {
    watched.models[{r, s}] = toy.values();
  };
  watched.trained = train(crew);
  return watched;
}

// Random deaths at random events.
std::vector<sim::Fault> deaths(std::uint64_t seed, std::size_t workers, std::uint64_t events,
                               std::size_t count) {
  RandomSequence draw(Random(seed).stream(77));
  std::vector<sim::Fault> faults;
  const std::uint64_t first = draw.below(events);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t at =
        i == 0 || draw.below(2) == 0 ? draw.below(events) : first + draw.below(50);
    faults.push_back(
        {at, Rank{static_cast<std::uint32_t>(draw.below(workers))}, sim::FaultKind::Die});
  }
  return faults;
}

bool named(const std::vector<sim::Fault>& faults, std::size_t rank) {
  return std::any_of(faults.begin(), faults.end(),
                     [&](const sim::Fault& fault) { return fault.worker.index() == rank; });
}

void expect_decodes(const Watched& watched, std::size_t workers) {
  for (std::uint32_t r = 0; r < workers; ++r) {
    std::map<comm::Version, comm::Outcome> rounds;
    comm::Version next = 0;
    for (const comm::Outcome& round : watched.trained.rounds_of({r})) {
      ASSERT_EQ(round.version, next++) << "worker " << r;
      rounds[round.version] = round;
    }
    for (const comm::PickUp& pick : watched.trained.pick_ups_of({r})) {
      EXPECT_LT(seconds(pick.waited), 1.0) << "worker " << r << " at step " << pick.step.value;
      const auto known = watched.models.find({{r}, pick.step});
      if (!pick.version || known == watched.models.end()) {
        continue;
      }
      const comm::Outcome& round = rounds.at(*pick.version);
      ASSERT_FALSE(round.is_void);
      for (std::size_t i = 0; i < workers; ++i) {
        double expected = pick.late ? marker({r}, pick.step, i) : 0;
        for (std::size_t m = 0; m < round.members.size(); ++m) {
          expected += marker(round.members[m], round.steps[m], i);
        }
        ASSERT_NEAR(known->second[i] * pick.divisor, expected, 1e-3)
            << "worker " << r << " step " << pick.step.value << " element " << i;
      }
    }
  }
}

void expect_equal_syncs(const Watched& watched, std::size_t workers) {
  std::map<comm::Version, std::pair<std::vector<Rank>, std::vector<float>>> syncs;
  for (std::uint32_t r = 0; r < workers; ++r) {
    for (const comm::Outcome& round : watched.trained.rounds_of({r})) {
      if (!round.is_sync || watched.trained.ends[r]) {
        continue;
      }
      ASSERT_FALSE(round.is_void) << "worker " << r << " has no result of sync " << round.version;
      const auto model = watched.models.find({{r}, Step{static_cast<std::int64_t>(round.version)}});
      if (model == watched.models.end()) {
        continue;
      }
      const auto [first, added] = syncs.try_emplace(round.version, round.members, model->second);
      if (!added) {
        EXPECT_EQ(first->second.first, round.members) << "sync " << round.version;
        EXPECT_EQ(first->second.second, model->second) << "sync " << round.version;
      }
    }
  }
}

TEST(RoundsLoss, SurvivorsOfWagmaHaveWhatTheirLedgersSay) {
  std::uint64_t voids = 0;
  std::uint64_t losses = 0;
  for (std::uint64_t seed = 0; seed < schedules(400); ++seed) {
    const std::size_t workers = std::array{3, 4, 5, 8}[seed % 4];
    Crew crew = marked_crew("wagma", workers, seed);
    crew.step.sync_period = 5;
    crew.step.trigger = comm::TriggerOptions{};
    using When = comm::TriggerOptions::When;
    crew.step.trigger->when =
        std::array{When::First, When::First, When::Initiator, When::Quorum}[seed / 4 % 4];
    crew.step.trigger->quorum = 2;
    crew.step.trigger->grace = seed % 3 == 0 ? std::chrono::microseconds(300) : Duration(0);
    crew.initial = [](Rank r, std::size_t i) { return marker(r, comm::kInitial, i); };
    crew.change = [](Rank r, Step s, std::size_t i, float at) { return marker(r, s, i) - at; };
    const std::uint64_t events = watch(crew).trained.events;
    crew.faults = deaths(seed, workers, events, workers > 4 && seed % 2 == 0 ? 2 : 1);
    const Watched watched = watch(crew);
    SCOPED_TRACE(fmt::format("seed {} workers {}", seed, workers));
    for (std::size_t r = 0; r < workers; ++r) {
      if (!named(crew.faults, r)) {
        const std::string text = text_of(watched.trained.ends[r]);
        ASSERT_TRUE(text.empty() || text.find("only 1 of 2 workers") != std::string::npos) << text;
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_decodes(watched, workers));
    ASSERT_NO_FATAL_FAILURE(expect_equal_syncs(watched, workers));
    voids += watched.trained.total().voids;
    losses += crew.faults.size();
  }
  fmt::print("{} losses, {:.2f} void rounds per loss, over all workers\n", losses,
             static_cast<double>(voids) / static_cast<double>(losses));
}

TEST(RoundsLoss, SurvivorsOfEveryAlgorithmGoOn) {
  const std::vector<std::string> algorithms = {
      "all-reduce", "local-sgd",  "d-psgd",         "sgp",   "overlapped-sgp",
      "ad-psgd",    "eager-solo", "eager-majority", "dadam", "starling"};
  for (std::uint64_t seed = 0; seed < schedules(600); ++seed) {
    const std::size_t workers = std::array{4, 5, 8}[seed % 3];
    Crew crew = marked_crew(algorithms[seed / 3 % algorithms.size()], workers, seed);
    if (crew.algorithm == "local-sgd") {
      crew.step.sync_period = 3;
    }
    crew.change = [](Rank r, Step, std::size_t i, float at) {
      return 0.1F * (static_cast<float>(r.value + i) - at);
    };
    const Trained whole = train(crew);
    ASSERT_EQ(whole.total().voids, 0U) << crew.algorithm << " seed " << seed;
    crew.faults = deaths(seed, workers, whole.events, 1);
    const Watched watched = watch(crew);
    SCOPED_TRACE(fmt::format("{} seed {} workers {}", crew.algorithm, seed, workers));
    for (std::size_t r = 0; r < workers; ++r) {
      if (!named(crew.faults, r)) {
        const std::string text = text_of(watched.trained.ends[r]);
        // Of the last two, the one of higher rank cannot tell a death from a cut.
        ASSERT_TRUE(text.empty() || text.find("only 1 of 2 workers") != std::string::npos) << text;
        for (const comm::PickUp& pick :
             watched.trained.pick_ups_of({static_cast<std::uint32_t>(r)})) {
          ASSERT_LT(seconds(pick.waited), 1.0) << "worker " << r;
        }
      }
    }
    if (crew.algorithm == "all-reduce") {
      ASSERT_NO_FATAL_FAILURE(expect_equal_syncs(watched, workers));
    }
  }
}

TEST(RoundsLoss, TheSmallerSideOfACutStopsAndTheOtherGoesOn) {
  for (std::uint64_t seed = 0; seed < schedules(60); ++seed) {
    const std::size_t workers = seed % 2 == 0 ? 5 : 4;
    const std::uint32_t first = seed % 2 == 0 ? (seed % 4 == 0 ? 3 : 2) : 2;
    Crew crew = marked_crew(seed % 3 == 0 ? "starling" : "wagma", workers, seed);
    crew.step.sync_period = seed % 3 == 0 ? std::nullopt : std::optional<std::uint32_t>(5);
    const std::uint64_t events = train(crew).events;
    // Early enough that nobody has finished.
    crew.faults = {{Random(seed).below(events / 2, 3), Rank{first}, sim::FaultKind::Cut}};
    const Trained trained = train(crew);
    SCOPED_TRACE(fmt::format("seed {} workers {} cut before {}", seed, workers, first));
    const bool low_side_goes_on = std::size_t{2} * first >= workers;
    for (std::uint32_t r = 0; r < workers; ++r) {
      const std::string text = text_of(trained.ends[r]);
      if ((r < first) == low_side_goes_on) {
        EXPECT_EQ(text, "") << "worker " << r;
      } else {
        EXPECT_NE(text.find("can be reached"), std::string::npos) << "worker " << r << ": " << text;
      }
    }
  }
}

TEST(RoundsLoss, StoppedWorkersOnlyDelay) {
  for (std::uint64_t seed = 0; seed < schedules(60); ++seed) {
    Crew crew = marked_crew(seed % 2 == 0 ? "wagma" : "starling", 5, seed);
    crew.step.sync_period = seed % 2 == 0 ? std::optional<std::uint32_t>(5) : std::nullopt;
    RandomSequence draw(Random(seed).stream(5));
    const std::uint64_t events = train(crew).events;
    for (int i = 0; i < 3; ++i) {
      crew.faults.push_back({draw.below(events), Rank{static_cast<std::uint32_t>(draw.below(5))},
                             sim::FaultKind::Stop, 0.05 * draw.uniform()});
    }
    const Trained trained = train(crew);
    for (std::size_t r = 0; r < 5; ++r) {
      ASSERT_EQ(text_of(trained.ends[r]), "") << "seed " << seed << " worker " << r;
      EXPECT_EQ(trained.totals[r].voids, 0U);
    }
  }
}

}  // namespace
}  // namespace starling::test
