// Rows that exchange part by part inside the step, on the virtual network: the same bits as when
// they exchange the whole model at once; and when workers die or leave at any moment, a part is the
// whole mean of the models of a group, or the own. STARLING_SCHEDULES scales the number of runs.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "starling/base/error.h"
#include "tests/comm/toy.h"

namespace starling::test {
namespace {

std::uint64_t schedules(std::uint64_t by_default) {
  const char* text = std::getenv("STARLING_SCHEDULES");
  return text == nullptr ? by_default
                         : std::max<std::uint64_t>(1, std::stoull(text) * by_default / 200);
}

float noise(Rank r, Step s, std::size_t i) {
  return static_cast<float>(
      Random(8).stream(r.value).normal(1000 * i + static_cast<std::uint64_t>(s.value)));
}

Crew crew_of(const std::string& algorithm, std::size_t workers, std::uint64_t seed) {
  RandomSequence draw(Random(seed).stream(workers));
  Crew crew;
  crew.workers = workers;
  crew.algorithm = algorithm;
  crew.step.steps = 30;
  crew.network.seed = seed;
  crew.network.jitter = draw.below(2) == 0 ? 0 : 5e-4 * draw.uniform();
  crew.network.detection = 1e-4 + 1e-2 * draw.uniform();
  crew.network.laziness = draw.below(2) == 0 ? 0 : 1e-4 * draw.uniform();
  crew.hop = draw.below(2) == 0 ? 0 : 2e-4 * draw.uniform();
  crew.network.ports.per_node = 1 + draw.below(3);
  crew.engine.in_shared_memory = draw.below(2) == 0;
  crew.pace = draw.below(2) == 0 ? jitter(seed) : heavy_tails(seed);
  return crew;
}

std::vector<std::size_t> ends_of(std::size_t elements, std::size_t part) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < elements;) {
    at = std::min(elements, at + part);
    ends.push_back(at * sizeof(float));
  }
  return ends;
}

// --- The same bits -------------------------------------------------------------------------------

struct Row {
  std::string algorithm;
  std::string schedule;
};

TEST(Streamed, TheSameBitsAsAtOnce) {
  const std::vector<Row> rows = {{"all-reduce", "complete"}, {"dadam", "complete"},
                                 {"dadam", "ring"},          {"dadam", "exponential"},
                                 {"dadam", "groups"},        {"dadam", "ring-neighbours"},
                                 {"dadam", "base-k"},        {"accum-adam", "aer"}};
  std::uint64_t seed = 0;
  for (const Row& row : rows) {
    for (const std::size_t workers : {2U, 3U, 5U, 8U}) {
      Crew crew = crew_of(row.algorithm, workers, ++seed);
      crew.schedule = row.schedule;
      crew.elements = 61;
      crew.change = [](Rank r, Step s, std::size_t i, float x) {
        return 0.1F * (noise(r, s, i) - x + static_cast<float>(r.index()));
      };
      const Trained whole = train(crew);
      for (const std::size_t part : {61U, 60U, 13U, 7U, 1U}) {
        SCOPED_TRACE(fmt::format("{} {} workers {} parts of {}", row.algorithm, row.schedule,
                                 workers, part));
        crew.streams = true;
        crew.step.parts = ends_of(crew.elements, part);
        const Trained streamed = train(crew);
        for (std::size_t r = 0; r < workers; ++r) {
          ASSERT_EQ(text_of(whole.ends[r]), "");
          ASSERT_EQ(text_of(streamed.ends[r]), "");
          ASSERT_EQ(std::memcmp(whole.models[r].data(), streamed.models[r].data(),
                                crew.elements * sizeof(float)),
                    0)
              << "worker " << r;
          EXPECT_EQ(streamed.totals[r].voids, 0U);
        }
      }
    }
  }
}

// Neighbours exchange models as they are, whatever the wire rounds in groups.
TEST(Streamed, NothingIsRoundedBetweenNeighbours) {
  for (const std::string algorithm : {"dadam", "d-psgd", "starling"}) {
    for (const bool streams : {false, true}) {
      Crew crew = crew_of(algorithm, 5, 3);
      crew.schedule = "ring-neighbours";
      crew.elements = 9;
      crew.streams = streams;
      crew.step.parts = ends_of(crew.elements, 4);
      crew.change = [](Rank r, Step s, std::size_t i, float x) {
        return 0.1F * (noise(r, s, i) - x);
      };
      const Trained exact = train(crew);
      crew.step.bf16 = true;
      const Trained rounded = train(crew);
      for (std::size_t r = 0; r < crew.workers; ++r) {
        ASSERT_EQ(text_of(rounded.ends[r]), "") << algorithm;
        EXPECT_EQ(rounded.models[r], exact.models[r]) << algorithm << ", worker " << r;
      }
    }
  }
}

// --- Deaths and farewells ------------------------------------------------------------------------

// Element i belongs to worker i mod N. What worker r contributes to version v is v + 1 in its
// elements and 0 elsewhere, whatever was averaged before.
float marker(Rank rank, std::int64_t version, std::size_t element, std::size_t workers) {
  return element % workers == rank.index() ? static_cast<float>(version + 1) : 0.0F;
}

// What one part was mixed to at one step.
struct Seen {
  std::vector<float> values;
  double divisor = 1;
};
using Sights = std::map<std::tuple<Rank, Step, std::size_t>, Seen>;

struct Marked {
  Trained trained;
  Sights sights;
};

Marked watch(Crew crew) {
  Marked marked;
  const std::size_t workers = crew.workers;
  crew.streams = true;
  crew.initial = [workers](Rank r, std::size_t i) { return marker(r, 0, i, workers); };
  crew.change = [workers](Rank r, Step s, std::size_t i, float) {
    return marker(r, s.value + 1, i, workers);
  };
  crew.mixed = [&](Rank r, Step s, std::size_t part, std::span<float> values, double divisor) {
    const bool added =
        marked.sights
            .insert({{r, s, part}, {std::vector<float>(values.begin(), values.end()), divisor}})
            .second;
    EXPECT_TRUE(added) << "worker " << r.value << " mixed part " << part << " of step " << s.value
                       << " twice";
    std::fill(values.begin(), values.end(), 0.0F);
  };
  marked.trained = train(crew);
  return marked;
}

// What each worker's model counts in a part; fails if one is there in part, or as another version,
// or if they do not count as much as one whole model together.
std::map<std::size_t, double> shares_in(const Seen& seen, std::size_t first, Step step,
                                        std::size_t workers) {
  std::map<std::size_t, std::set<float>> by_worker;
  for (std::size_t i = 0; i < seen.values.size(); ++i) {
    by_worker[(first + i) % workers].insert(seen.values[i]);
  }
  std::map<std::size_t, double> shares;
  double all = 0;
  for (const auto& [worker, values] : by_worker) {
    EXPECT_EQ(values.size(), 1U) << "a torn contribution of worker " << worker;
    if (*values.begin() != 0) {
      shares[worker] = *values.begin() / static_cast<double>(step.value + 1);
      all += shares[worker];
      if (seen.divisor != 1) {
        EXPECT_NEAR(shares[worker], 1 / seen.divisor, 1e-5) << "of worker " << worker;
      }
    }
  }
  EXPECT_NEAR(all, 1, 1e-5);
  return shares;
}

void expect_whole_means(const Marked& marked, const Crew& crew) {
  std::map<std::tuple<Rank, Step>, comm::Outcome> rounds;
  for (std::uint32_t r = 0; r < crew.workers; ++r) {
    comm::Version next = 0;
    for (const comm::Outcome& round : marked.trained.rounds_of({r})) {
      ASSERT_EQ(round.version, next++) << "worker " << r;
      rounds[{Rank{r}, Step{static_cast<std::int64_t>(round.version)}}] = round;
    }
  }
  for (const auto& [where, seen] : marked.sights) {
    const auto& [rank, step, part] = where;
    SCOPED_TRACE(fmt::format("worker {} step {} part {}", rank, step.value, part));
    const std::size_t first = part == 0 ? 0 : crew.step.parts[part - 1] / sizeof(float);
    std::set<std::size_t> members;
    for (const auto& [worker, share] : shares_in(seen, first, step, crew.workers)) {
      members.insert(worker);
    }
    ASSERT_TRUE(members.contains(rank.index()));
    const auto row = rounds.find({rank, step});
    if (row != rounds.end() && !row->second.is_void) {
      std::set<std::size_t> told;
      for (const Rank member : row->second.members) {
        told.insert(member.index());
      }
      ASSERT_EQ(members, told);
    }
  }
}

std::vector<sim::Fault> deaths(std::uint64_t seed, std::size_t workers, std::uint64_t events,
                               std::size_t count) {
  RandomSequence draw(Random(seed).stream(77));
  std::vector<sim::Fault> faults;
  const std::uint64_t first = draw.below(events);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t at = i == 0 ? first : first + draw.below(60);
    faults.push_back(
        {at, Rank{static_cast<std::uint32_t>(draw.below(workers))}, sim::FaultKind::Die});
  }
  return faults;
}

bool named(const std::vector<sim::Fault>& faults, std::size_t rank) {
  return std::any_of(faults.begin(), faults.end(),
                     [&](const sim::Fault& fault) { return fault.worker.index() == rank; });
}

void expect_survivors_end(const Trained& trained, const Crew& crew) {
  for (std::size_t r = 0; r < crew.workers; ++r) {
    if (!named(crew.faults, r)) {
      const std::string text = text_of(trained.ends[r]);
      // Who is left alone of the last two or three cannot tell deaths from a cut.
      ASSERT_TRUE(text.empty() || text.find("only 1 of ") != std::string::npos) << text;
      for (const comm::PickUp& pick : trained.pick_ups_of({static_cast<std::uint32_t>(r)})) {
        ASSERT_LT(seconds(pick.waited), 1.0) << "worker " << r << " step " << pick.step.value;
      }
      if (text.empty()) {
        ASSERT_EQ(trained.totals[r].pick_ups, crew.step.steps) << "worker " << r;
      }
    }
  }
}

TEST(Streamed, DeathsLeaveWholeMeansOrTheOwn) {
  const std::array<std::string, 6> names = {"complete", "exponential", "aer",
                                            "ring",     "groups",      "ring-neighbours"};
  std::uint64_t voids = 0;
  std::uint64_t losses = 0;
  std::uint64_t torn = 0;  // versions of which a worker had some parts, and not the others
  for (std::uint64_t seed = 0; seed < schedules(200); ++seed) {
    const std::size_t workers = std::array{3, 4, 5, 8}[seed % 4];
    Crew crew = crew_of("dadam", workers, seed);
    crew.schedule = names[seed / 4 % names.size()];
    const std::size_t parts = std::array{1, 2, 5}[seed % 3];
    crew.elements = parts * 2 * workers;
    crew.step.parts = ends_of(crew.elements, 2 * workers);
    SCOPED_TRACE(fmt::format("seed {} workers {} parts {}", seed, workers, parts));
    const std::uint64_t events = watch(crew).trained.events;
    crew.faults = deaths(seed, workers, events, workers > 4 && seed % 2 == 0 ? 2 : 1);
    const Marked marked = watch(crew);
    ASSERT_NO_FATAL_FAILURE(expect_survivors_end(marked.trained, crew));
    ASSERT_NO_FATAL_FAILURE(expect_whole_means(marked, crew));
    voids += marked.trained.total().voids;
    losses += crew.faults.size();
    for (const auto& [where, seen] : marked.sights) {
      const auto& [rank, step, part] = where;
      torn += part > 0 && seen.divisor == 1 &&
                      marked.sights.at({rank, step, part - 1}).divisor > 1 &&
                      !named(crew.faults, rank.index())
                  ? 1
                  : 0;
    }
  }
  EXPECT_GT(torn, 0U) << "no death fell between two parts";
  fmt::print("{} losses: {:.2f} void versions per loss, over all workers; {} cut between parts\n",
             losses, static_cast<double>(voids) / static_cast<double>(losses), torn);
}

// Workers with different numbers of steps: who has finished leaves, in the middle of what the
// others exchange.
TEST(Streamed, FarewellsLeaveWholeMeansOrTheOwn) {
  for (std::uint64_t seed = 0; seed < schedules(200); ++seed) {
    const std::size_t workers = std::array{2, 3, 5}[seed % 3];
    Crew crew = crew_of("dadam", workers, seed);
    crew.schedule = seed % 2 == 0 ? "complete" : "exponential";
    const std::size_t parts = std::array{1, 3}[seed % 2];
    crew.elements = parts * workers;
    crew.step.parts = ends_of(crew.elements, workers);
    const auto steps_of = [seed](Rank r) { return 5 + Random(seed).stream(99).below(10, r.value); };
    crew.steps_of = steps_of;
    SCOPED_TRACE(fmt::format("seed {} workers {} parts {}", seed, workers, parts));
    const Marked marked = watch(crew);
    for (std::uint32_t r = 0; r < workers; ++r) {
      ASSERT_EQ(text_of(marked.trained.ends[r]), "") << "worker " << r;
      ASSERT_EQ(marked.trained.totals[r].pick_ups, steps_of({r})) << "worker " << r;
    }
    ASSERT_NO_FATAL_FAILURE(expect_whole_means(marked, crew));
  }
}

// An application that fails between two parts has published one part of the next version, and will
// not publish the rest: it leaves, and nobody waits for it.
TEST(Streamed, AnApplicationThatFailsBetweenPartsLeaves) {
  for (std::uint64_t seed = 0; seed < schedules(100); ++seed) {
    const std::size_t workers = std::array{3, 4, 5}[seed % 3];
    Crew crew = crew_of("dadam", workers, seed);
    crew.schedule = seed % 2 == 0 ? "complete" : "exponential";
    crew.streams = true;
    crew.elements = 6;
    crew.step.parts = ends_of(crew.elements, 2);
    const Rank failing{static_cast<std::uint32_t>(seed % workers)};
    crew.mixed = [&](Rank r, Step s, std::size_t part, std::span<float>, double) {
      if (r == failing && s.value == 7 && part == 1) {
        throw Error(ErrorCode::Diverged, "a value is not finite");
      }
    };
    SCOPED_TRACE(fmt::format("seed {} workers {}", seed, workers));
    const Trained trained = train(crew);
    for (std::size_t r = 0; r < workers; ++r) {
      ASSERT_EQ(text_of(trained.ends[r]), r == failing.index() ? "a value is not finite" : "")
          << "worker " << r;
      ASSERT_EQ(trained.totals[r].pick_ups, r == failing.index() ? 7 : crew.step.steps);
    }
  }
}

// A common model stays common: the survivors have the same bits after every step.
TEST(Streamed, SurvivorsOfAnAllReduceKeepOneModel) {
  std::uint64_t repeated = 0;
  for (std::uint64_t seed = 0; seed < schedules(200); ++seed) {
    const std::size_t workers = std::array{3, 4, 5, 8}[seed % 4];
    Crew crew = crew_of("all-reduce", workers, seed);
    crew.streams = true;
    crew.elements = 12;
    crew.step.parts = ends_of(crew.elements, std::array{12, 5, 1}[seed % 3]);
    crew.change = [](Rank r, Step s, std::size_t i, float x) {
      return 0.1F * (noise(r, s, i) - x + static_cast<float>(r.index()));
    };
    std::map<Step, std::map<Rank, std::vector<float>>> after;
    crew.after_step = [&](Rank r, Step s, Toy& toy, comm::Engine&) { after[s][r] = toy.values(); };
    SCOPED_TRACE(fmt::format("seed {} workers {}", seed, workers));
    const std::uint64_t events = train(crew).events;
    after.clear();
    crew.faults = deaths(seed, workers, events, workers > 4 && seed % 2 == 0 ? 2 : 1);
    const Trained trained = train(crew);
    ASSERT_NO_FATAL_FAILURE(expect_survivors_end(trained, crew));
    for (const auto& [step, models] : after) {
      for (const auto& [rank, model] : models) {
        ASSERT_EQ(model, models.begin()->second)
            << "step " << step.value << " worker " << rank.value;
      }
    }
    for (std::uint32_t r = 0; r < workers; ++r) {
      for (const comm::Outcome& round : trained.rounds_of({r})) {
        ASSERT_TRUE(!round.is_void || trained.ends[r])
            << "worker " << r << " has no result of version " << round.version;
        repeated += round.epoch > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(repeated, 0U) << "nobody survived a loss";
}

}  // namespace
}  // namespace starling::test
