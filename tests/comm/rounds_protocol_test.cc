// The protocol of rounds: every version once and in order whoever starts it, who waits for whom,
// what a sync is, and how workers leave.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "tests/comm/audit.h"

namespace starling::test {
namespace {

using When = comm::TriggerOptions::When;

AuditCrew first_arrival(std::size_t workers, std::uint64_t seed) {
  AuditCrew crew;
  crew.workers = workers;
  crew.rounds.trigger.when = When::First;
  crew.network.seed = seed;
  crew.per_worker = 1;
  return crew;
}

// --- Once and in order -------------------------------------------------------------------------

TEST(RoundsProtocol, EveryVersionOnceWithAnyNumberOfActivators) {
  for (const std::size_t workers : {8U, 16U}) {
    for (std::size_t activators = 1; activators <= workers; ++activators) {
      AuditCrew c = first_arrival(workers, activators);
      c.steps = std::max<std::uint64_t>(10, versions_or(1000) / workers);
      // The first come at the very same time, the others half a step later.
      c.pace = [&](Rank r, Step) { return r.index() < activators ? 1e-3 : 1.5e-3; };
      SCOPED_TRACE(testing::Message() << activators << " of " << workers << " workers activate");
      const Audited a = audit(c);
      expect_clean(a);
      for (const auto& outcomes : a.outcomes) {
        EXPECT_GE(outcomes.size(), c.steps);
      }
    }
  }
}

TEST(RoundsProtocol, EveryVersionOnceInAnyOrderOfArrival) {
  for (const std::size_t workers : {5U, 8U, 16U}) {
    AuditCrew c = first_arrival(workers, workers);
    c.steps = versions_or(400);
    c.network.jitter = 1e-3;
    c.pace = heavy_tails(workers);
    const Audited a = audit(c);
    expect_clean(a);
    for (const auto& outcomes : a.outcomes) {
      EXPECT_GE(outcomes.size(), c.steps);
    }
  }
}

// Any worker alone starts everybody: by few notes, over few others.
TEST(RoundsProtocol, AnyWorkerAloneStartsAll) {
  constexpr double kLatency = 1e-3;
  constexpr comm::Version kVersions = 3;
  for (const std::size_t workers : {2U, 5U, 8U, 16U, 64U}) {
    const auto hops = static_cast<std::uint64_t>(std::bit_width(workers - 1));
    for (std::uint32_t alone = 0; alone < workers; alone += workers > 16 ? 21 : 1) {
      AuditCrew c = first_arrival(workers, alone);
      c.network.ports.latency = kLatency;
      // It stays until all have seen what it started.
      c.steps_of = [&](Rank r) { return r == Rank{alone} ? kVersions + 1 : 1; };
      c.pace = [&](Rank r, Step s) {
        return r != Rank{alone} ? 2.0 : s == Step{kVersions} ? 1.0 : 1e-2;
      };
      SCOPED_TRACE(testing::Message() << alone << " of " << workers);
      const Audited a = audit(c);
      expect_clean(a);
      for (comm::Version v = 0; v < kVersions; ++v) {
        const comm::Outcome& first = a.outcomes[alone].at(v);
        for (std::size_t r = 0; r < workers; ++r) {
          const comm::Outcome& outcome = a.outcomes[r].at(v);
          EXPECT_FALSE(outcome.is_void);
          EXPECT_EQ(outcome.activator, Rank{alone});
          EXPECT_EQ(outcome.own, r == alone ? Step{static_cast<std::int64_t>(v)} : comm::kInitial);
          // A hop takes a latency, and next to nothing besides.
          const double way = seconds(outcome.activated - first.activated);
          EXPECT_LE(way, static_cast<double>(hops) * kLatency * 1.01);
        }
      }
      EXPECT_LE(a.notes_until(kVersions - 1), kVersions * workers * hops);
    }
  }
}

// Operations are told apart by 12 bits of the version: more of them than that go by.
TEST(RoundsProtocol, MoreVersionsThanTagsTellApart) {
  for (const When when : {When::First, When::All, When::Need}) {
    AuditCrew c = first_arrival(4, 7);
    c.rounds.trigger.when = when;
    c.rounds.sync_period = when == When::First ? std::optional(10U) : std::nullopt;
    c.steps = std::max<std::uint64_t>(5000, versions_or(0));
    c.pace = jitter(7);
    const Audited a = audit(c);
    expect_clean(a);
    EXPECT_GE(a.outcomes[0].size(), c.steps);
  }
}

// --- Who waits for whom ------------------------------------------------------------------------

constexpr std::uint64_t kTau = 8;

// Worker 5 sleeps in its first step, for that many steps of the others and a half.
struct Asleep {
  Trained trained;
  std::vector<std::vector<double>> times;  // by rank and step: when it was over
};
Asleep asleep_for(double steps) {
  Crew crew;
  crew.workers = 8;
  crew.step.steps = 3 * kTau;
  crew.step.sync_period = kTau;
  crew.pace = [=](Rank r, Step s) {
    return r == Rank{5} && s == Step{0} && steps > 0 ? (steps + 0.5) * 1e-3 : 1e-3;
  };
  crew.change = [](Rank r, Step s, std::size_t i, float) {
    return static_cast<float>(r.index() + i) * static_cast<float>(s.value % 3);
  };
  Asleep asleep;
  asleep.times.resize(crew.workers);
  crew.after_step = [&](Rank r, Step, Toy&, comm::Engine& engine) {
    asleep.times[r.index()].push_back(seconds(engine.now().time_since_epoch()));
  };
  asleep.trained = train(crew);
  for (const auto& end : asleep.trained.ends) {
    EXPECT_EQ(text_of(end), "");
  }
  return asleep;
}

TEST(RoundsProtocol, NobodyWaitsForASleeperBeforeTheSync) {
  const Asleep awake = asleep_for(0);
  for (std::uint64_t m = 1; m < kTau; ++m) {
    SCOPED_TRACE(testing::Message() << "asleep for " << m << " steps");
    const Asleep a = asleep_for(static_cast<double>(m));
    for (std::size_t r = 0; r < 8; ++r) {
      for (std::size_t t = 0; t + 1 < kTau && r != 5; ++t) {
        EXPECT_NEAR(a.times[r][t], awake.times[r][t], 1e-4);
      }
    }
    // What it contributes is 1, 2, … m versions old, and m until the sync.
    const auto rounds = a.trained.rounds_of(Rank{5});
    for (std::uint64_t v = 0; v + 1 < kTau; ++v) {
      const auto age = static_cast<std::int64_t>(rounds[v].version) - rounds[v].own.value;
      EXPECT_EQ(age, static_cast<std::int64_t>(std::min(v + 1, m))) << "version " << v;
    }
    EXPECT_TRUE(rounds[kTau - 1].is_sync);
    EXPECT_EQ(rounds[kTau - 1].own, Step{kTau - 1});
    // Awake again, it finds everything done.
    const auto picked = a.trained.pick_ups_of(Rank{5});
    for (std::uint64_t t = 0; t + m < kTau; ++t) {
      EXPECT_TRUE(t + 1 == kTau || picked[t].late) << "step " << t;
      EXPECT_EQ(picked[t].waited, Duration(0)) << "step " << t;
    }
    EXPECT_LE(a.trained.total().ages.rbegin()->first, std::int64_t{kTau} - 1);
  }
}

TEST(RoundsProtocol, ASleeperStopsAllAtTheSyncAndTheyGoOnAfterIt) {
  const Asleep a = asleep_for(30);
  for (std::size_t r = 0; r < 8; ++r) {
    if (r != 5) {
      EXPECT_LT(a.times[r][kTau - 2], kTau * 1e-3) << "worker " << r;
    }
    EXPECT_GT(a.times[r][kTau - 1], 37e-3) << "worker " << r;
    EXPECT_LT(a.times[r][kTau - 1], 39e-3) << "worker " << r;
    ASSERT_EQ(a.times[r].size(), 3 * kTau);
    EXPECT_LT(a.times[r].back(), 56e-3) << "worker " << r;
    EXPECT_EQ(a.trained.totals[r].rounds, 3 * kTau);
    EXPECT_EQ(a.trained.totals[r].syncs, 3U);
  }
}

// --- Syncs -------------------------------------------------------------------------------------

// After a sync all models are the same to the bit. A fast worker starts the next version while
// others are still inside the sync; where a group has one member, that version ends as soon as it
// starts.
TEST(RoundsProtocol, ModelsAreTheSameToTheBitAfterEverySync) {
  for (const std::size_t workers : {3U, 5U, 8U, 16U}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      Crew crew;
      crew.workers = workers;
      crew.group_size = 2;
      crew.elements = 33;
      crew.step.steps = 24;
      crew.step.sync_period = 4;
      crew.network.seed = seed;
      crew.network.jitter = 1e-3;
      const Random noise(seed);
      crew.change = [&](Rank r, Step s, std::size_t i, float) {
        return static_cast<float>(noise.stream(r.value).normal(1000 * i + s.value));
      };
      crew.pace = [&](Rank r, Step s) { return r == Rank{0} ? 1e-9 : heavy_tails(seed)(r, s); };
      std::map<Step, std::vector<std::vector<float>>> after;
      crew.after_step = [&](Rank, Step s, Toy& toy, comm::Engine&) {
        if ((s.value + 1) % 4 == 0) {
          after[s].push_back(toy.values());
        }
      };
      SCOPED_TRACE(testing::Message() << workers << " workers, seed " << seed);
      const Trained t = train(crew);
      EXPECT_EQ(after.size(), 6U);
      for (const auto& [step, models] : after) {
        EXPECT_EQ(models.size(), workers);
        for (const std::vector<float>& model : models) {
          EXPECT_EQ(std::memcmp(model.data(), models[0].data(), model.size() * sizeof(float)), 0)
              << "step " << step.value;
        }
      }
    }
  }
}

TEST(RoundsProtocol, AnActivationInsideASyncIsKeptAndTheSyncIsHandedOver) {
  for (const std::size_t workers : {3U, 5U, 8U}) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      AuditCrew c = first_arrival(workers, seed);
      c.group_size = workers == 8 ? 1 : 2;
      c.steps = 12;
      c.rounds.sync_period = 3;
      c.network.jitter = 1e-3;
      c.pace = [&](Rank r, Step s) { return r == Rank{0} ? 1e-9 : jitter(seed)(r, s); };
      SCOPED_TRACE(testing::Message() << workers << " workers, seed " << seed);
      expect_clean(audit(c));
    }
  }
}

// --- Leaving -----------------------------------------------------------------------------------

// Workers with different numbers of steps: each leaves with versions of the others in flight, and
// those who stay go on without it.
TEST(RoundsProtocol, WorkersLeaveWithVersionsInFlight) {
  for (const When when : {When::First, When::All, When::Need, When::Quorum, When::Initiator}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      AuditCrew c = first_arrival(seed % 2 == 0 ? 8 : 5, seed);
      c.rounds.trigger.when = when;
      c.rounds.trigger.quorum = 2;
      c.steps = 40;
      c.network.jitter = 1e-3;
      c.pace = jitter(seed);
      const Random draws(seed);
      c.steps_of = [&](Rank r) { return r == Rank{1} ? 40 : draws.below(40, r.value); };
      SCOPED_TRACE(testing::Message() << "trigger " << static_cast<int>(when) << ", seed " << seed);
      const Audited a = audit(c);
      expect_clean(a);
      for (std::uint32_t r = 0; r < c.workers; ++r) {
        EXPECT_EQ(a.pick_ups[r].size(), c.steps_of(Rank{r}));
      }
    }
  }
}

}  // namespace
}  // namespace starling::test
