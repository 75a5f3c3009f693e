// Whose contribution of which step is in a sum: read from the numbers themselves, in every round on
// every worker, for every trigger, with slow writers, slow readers, jitter and stragglers.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/comm/audit.h"

namespace starling::test {
namespace {

using comm::TriggerOptions;
using When = TriggerOptions::When;

struct Start {
  const char* name;
  TriggerOptions trigger;
};

TriggerOptions trigger(When when, double grace = 0, bool learnt = false, std::uint32_t quorum = 1) {
  TriggerOptions options;
  options.when = when;
  options.quorum = quorum;
  options.grace = std::chrono::duration_cast<Duration>(Seconds(grace));
  options.learn_grace = learnt;
  options.seed = 17;
  return options;
}

std::vector<Start> starts() {
  std::vector<Start> all;
  all.push_back({"first", trigger(When::First)});
  all.push_back({"grace", trigger(When::First, 2e-4)});
  all.push_back({"learnt", trigger(When::First, 1e-3, true)});
  all.push_back({"quorum", trigger(When::Quorum, 0, false, 3)});
  all.push_back({"initiator", trigger(When::Initiator)});
  all.push_back({"all", trigger(When::All)});
  all.push_back({"need", trigger(When::Need)});
  all.push_back({"one-side", trigger(When::OneSide)});
  return all;
}

class EveryTrigger : public testing::TestWithParam<Start> {
 protected:
  AuditCrew crew(std::size_t workers, std::uint64_t seed) const {
    AuditCrew crew;
    crew.workers = workers;
    crew.rounds.trigger = GetParam().trigger;
    crew.network.seed = seed;
    crew.network.jitter = 5e-5;
    crew.schedule = GetParam().trigger.when == When::OneSide ? "pairs" : "groups";
    crew.pace = jitter(seed);
    return crew;
  }
};

TEST_P(EveryTrigger, SumsSayWhoseStepsAreInThem) {
  for (const std::size_t workers : {5U, 8U, 16U}) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      AuditCrew c = crew(workers, seed);
      c.steps = 60;
      c.pace = seed == 1 ? jitter(seed) : seed == 2 ? stragglers(seed) : heavy_tails(seed);
      SCOPED_TRACE(testing::Message() << workers << " workers, seed " << seed);
      const Audited a = audit(c);
      expect_clean(a);
      // Nobody is late where all are waited for; elsewhere many are, or this would show nothing.
      const bool all = GetParam().trigger.when == When::All;
      EXPECT_EQ(a.stale_fraction() > 0.1, !all);
      EXPECT_EQ(a.stale_fraction() == 0, all);
      EXPECT_GT(a.audited, workers * c.steps * 9 / 10);
    }
  }
}

TEST_P(EveryTrigger, SlowWritersAndSlowReadersTearNothing) {
  AuditCrew c = crew(8, 5);
  c.steps = versions_or(300);
  c.network.jitter = 3e-4;
  c.engine.chunk = 16;  // a sum is many messages
  c.per_worker = 4;
  c.pace = [](Rank r, Step s) { return jitter(5)(r, s) * 0.2; };
  c.writing = [](Rank r, Step s) { return jitter(6)(r, s) * (r == Rank{3} ? 2 : 0.1); };
  c.reading = [](Rank r, Step s) { return jitter(7)(r, s) * (r == Rank{4} ? 2 : 0.1); };
  expect_clean(audit(c));
}

TEST_P(EveryTrigger, EachContributionSetsOneBitOfItsThree) {
  AuditCrew c = crew(8, 9);
  c.steps = 200;
  c.bits = true;
  c.pace = stragglers(9);
  expect_clean(audit(c));
}

TEST_P(EveryTrigger, SixtyFourWorkers) {
  AuditCrew c = crew(64, 11);
  c.steps = 20;
  c.per_worker = 1;
  c.pace = stragglers(11);
  expect_clean(audit(c));
}

// By need nobody's own step is in a version, so that this is about the others.
TEST_P(EveryTrigger, SyncsHoldEveryonesOwnStep) {
  AuditCrew c = crew(5, 13);
  c.steps = 80;
  if (GetParam().trigger.when != When::Need) {
    c.rounds.sync_period = 8;
  }
  c.pace = stragglers(13);
  const Audited a = audit(c);
  expect_clean(a);
  for (const auto& outcomes : a.outcomes) {
    for (const comm::Outcome& outcome : outcomes) {
      if (!outcome.is_sync || outcome.is_void) {
        continue;
      }
      EXPECT_EQ(outcome.members.size(), 5U);
      for (const Step step : outcome.steps) {
        EXPECT_EQ(step, Step{static_cast<std::int64_t>(outcome.version)});
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<Start>& start) {
  std::string name = start.param.name;
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Rounds, EveryTrigger, testing::ValuesIn(starts()), name_of);

}  // namespace
}  // namespace starling::test
