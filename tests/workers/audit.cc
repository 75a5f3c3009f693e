#include "tests/workers/audit.h"

#include <algorithm>
#include <cmath>

#include "starling/base/error.h"
#include "tests/workers/audited_toy.h"

namespace starling::test {
namespace {

const comm::Outcome& outcome_of(const Run& run, const comm::PickUp& pick_up) {
  const auto& outcome = run.rounds.at(*pick_up.version);
  check(!outcome.is_void, "worker {}, step {}: used version {}, which is void", run.self,
        pick_up.step, *pick_up.version);
  return outcome;
}

// `value` times `divisor` is a whole number.
void expect_sum(const Run& run, const comm::PickUp& pick_up, double sum) {
  const double value = run.values.at(static_cast<std::size_t>(pick_up.step.value));
  check(std::abs(value * pick_up.divisor - sum) < 0.5,
        "worker {}, step {}: {} x {} is not the {} of version {}", run.self, pick_up.step, value,
        pick_up.divisor, sum, pick_up.version.value_or(0));
}

// Of a held model: what it was when its last round ended, and how many updates were in it then.
struct Held {
  double base = 0;
  std::int64_t updates = 0;

  double with(Rank rank, std::int64_t until, std::uint32_t sync_period) const {
    double value = base;
    for (std::int64_t i = updates; i < until; ++i) {
      value += AuditedToy::change(rank, Step{i}, sync_period);
    }
    return value;
  }
};

// The members and what they contributed to version `v`, as the owner of `table` saw it.
std::vector<std::pair<Rank, std::int64_t>> seen(const Run& run, const std::vector<double>& table,
                                                std::uint64_t v) {
  std::vector<std::pair<Rank, std::int64_t>> members;
  for (std::uint32_t r = 0; r < run.workers && !table.empty(); ++r) {
    if (const double entry = table.at(v * run.workers + r); entry != 0) {
      members.emplace_back(Rank{r}, std::llround(entry) - 3);
    }
  }
  return members;
}

}  // namespace

std::uint64_t Run::voids() const {
  return static_cast<std::uint64_t>(std::count_if(
      rounds.begin(), rounds.end(), [](const comm::Outcome& outcome) { return outcome.is_void; }));
}

double Run::longest_wait() const {
  Duration longest(0);
  for (const comm::PickUp& pick_up : pick_ups) {
    longest = std::max(longest, pick_up.waited);
  }
  return seconds(longest);
}

void read(Run& run, std::istream& ledger) {
  for (const comm::LedgerRow& row : comm::read_ledger(ledger)) {
    if (const auto* outcome = std::get_if<comm::Outcome>(&row.what)) {
      run.rounds.push_back(*outcome);
    } else {
      run.pick_ups.push_back(std::get<comm::PickUp>(row.what));
    }
  }
}

void audit_order(const Run& run) {
  check(run.rounds.size() == run.steps && run.pick_ups.size() == run.steps &&
            run.values.size() == run.steps,
        "worker {}: {} rounds, {} pick-ups and {} values in {} steps", run.self, run.rounds.size(),
        run.pick_ups.size(), run.values.size(), run.steps);
  for (std::uint64_t v = 0; v < run.steps; ++v) {
    const comm::Outcome& outcome = run.rounds[v];
    check(outcome.version == v, "worker {}: version {} in place of {}", run.self, outcome.version,
          v);
    check(run.pick_ups[v].step.value == static_cast<std::int64_t>(v), "worker {}: step {} twice",
          run.self, run.pick_ups[v].step);
    check(!outcome.is_void || run.lossy, "worker {}: version {} is void", run.self, v);
    check(outcome.is_sync == ((v + 1) % run.sync_period == 0), "worker {}: a sync at version {}",
          run.self, v);
    if (outcome.is_void) {
      continue;
    }
    check(std::find(outcome.members.begin(), outcome.members.end(), run.self) !=
              outcome.members.end(),
          "worker {} is not in its own version {}", run.self, v);
    for (const Step step : outcome.steps) {
      const bool in_time = step.value <= static_cast<std::int64_t>(v);
      const bool in_person = step.value == static_cast<std::int64_t>(v);
      check(outcome.is_sync ? in_person : in_time, "worker {}: step {} in version {}", run.self,
            step, v);
    }
    check(!outcome.is_sync || run.lossy || outcome.members.size() == run.workers,
          "worker {}: {} in the sync of version {}", run.self, outcome.members.size(), v);
  }
}

void audit_averages(const Run& run) {
  for (const comm::PickUp& pick_up : run.pick_ups) {
    double sum = 0;
    if (!pick_up.version) {
      expect_sum(run, pick_up, payload(run.self, pick_up.step));
      continue;
    }
    const comm::Outcome& outcome = outcome_of(run, pick_up);
    for (std::size_t i = 0; i < outcome.members.size(); ++i) {
      sum += payload(outcome.members[i], outcome.steps[i]);
    }
    const bool late = outcome.own != pick_up.step;
    check(late == pick_up.late, "worker {}, step {}: late or not?", run.self, pick_up.step);
    const auto members = static_cast<double>(outcome.members.size());
    check(pick_up.divisor == (late ? members + 1 : members), "worker {}, step {}: divided by {}",
          run.self, pick_up.step, pick_up.divisor);
    expect_sum(run, pick_up, late ? sum + payload(run.self, pick_up.step) : sum);
  }
}

void audit_gradients(const Run& run, const Tables& tables) {
  std::vector<std::int64_t> contributed(run.workers, -1);  // the last step, by worker
  std::vector<double> sums;                                // by version
  for (const comm::Outcome& outcome : run.rounds) {
    double& sum = sums.emplace_back(0);
    std::vector<std::int64_t> after = contributed;
    for (std::size_t i = 0; i < outcome.members.size() && !outcome.is_void; ++i) {
      const Rank member = outcome.members[i];
      for (std::int64_t s = contributed.at(member.index()) + 1; s <= outcome.steps[i].value; ++s) {
        sum += payload(member, Step{s});
      }
      after[member.index()] = std::max(after[member.index()], outcome.steps[i].value);
    }
    // What is void for one may have ended for another: each knows best what it has contributed.
    for (std::size_t r = 0; r < run.workers; ++r) {
      if (!tables.at(r).empty()) {
        const double entry = tables[r].at(outcome.version * run.workers + r);
        after[r] = entry == 0 ? contributed[r]
                              : std::max<std::int64_t>(contributed[r], std::llround(entry) - 3);
      }
    }
    contributed = std::move(after);
  }
  for (const comm::PickUp& pick_up : run.pick_ups) {
    if (!pick_up.version) {
      expect_sum(run, pick_up, payload(run.self, pick_up.step));
      continue;
    }
    check(pick_up.divisor == static_cast<double>(outcome_of(run, pick_up).members.size()),
          "worker {}, step {}: divided by {}", run.self, pick_up.step, pick_up.divisor);
    expect_sum(run, pick_up, sums[*pick_up.version]);
  }
}

void audit_held(const Run& run, const Tables& tables) {
  std::vector<Held> models(run.workers);
  for (std::uint32_t r = 0; r < run.workers; ++r) {
    models[r].base = payload(Rank{r}, comm::kInitial);
  }
  std::int64_t next = 0;  // the first update that has not been looked at
  const auto look_until = [&](std::int64_t end) {
    for (; next < end; ++next) {
      const double expected = models[run.self.index()].with(run.self, next + 1, run.sync_period);
      const double value = run.values.at(static_cast<std::size_t>(next));
      check(std::abs(value - expected) <= 1e-11 * expected, "worker {}, step {}: {}, not {}",
            run.self, next, value, expected);
    }
  };
  for (std::uint64_t v = 0; v < run.steps; ++v) {
    // Updates that were in before this round had ended.
    if (!run.rounds[v].is_void) {
      look_until(run.rounds[v].own_at_end.value);
    }
    std::vector<Held> after = models;
    for (const std::vector<double>& table : tables) {
      const auto members = seen(run, table, v);
      double sum = 0;
      for (const auto& [rank, updates] : members) {
        sum += models[rank.index()].with(rank, updates, run.sync_period);
      }
      // Whoever has no table of its own is dead: what became of its model does not matter.
      const auto owner = static_cast<std::size_t>(&table - tables.data());
      for (const auto& [rank, updates] : members) {
        const bool has_own = rank.index() < tables.size() && !tables[rank.index()].empty();
        if (rank.index() == owner || !has_own) {
          after[rank.index()] = {sum / static_cast<double>(members.size()), updates};
        }
      }
    }
    models = std::move(after);
  }
  look_until(static_cast<std::int64_t>(run.steps));
}

std::vector<double> table(const Run& run) {
  std::vector<double> entries(run.steps * run.workers);
  for (const comm::Outcome& outcome : run.rounds) {
    for (std::size_t i = 0; i < outcome.members.size() && !outcome.is_void; ++i) {
      entries.at(outcome.version * run.workers + outcome.members[i].index()) =
          static_cast<double>(outcome.steps[i].value) + 3;
    }
  }
  return entries;
}

std::vector<double> syncs(const Run& run, bool held) {
  std::vector<double> values(run.steps);
  for (const comm::Outcome& outcome : run.rounds) {
    const comm::Version v = outcome.version;
    // A later round may have ended before a held model was seen again.
    const bool hidden = held && v + 1 < run.steps &&
                        run.rounds[v + 1].own_at_end.value <= static_cast<std::int64_t>(v);
    if (outcome.is_sync && !hidden) {
      values.at(v) = outcome.is_void ? -1 : run.values.at(v);
    }
  }
  return values;
}

std::size_t compare_syncs(const Run& run, const std::vector<double>& own,
                          const std::vector<double>& other) {
  std::size_t same = 0;
  for (std::size_t v = 0; v < own.size(); ++v) {
    if (own[v] != 0 && other.at(v) != 0) {
      check(own[v] == other[v], "worker {}: {} after the sync of version {}, another has {}",
            run.self, own[v], v, other[v]);
      ++same;
    }
  }
  return same;
}

}  // namespace starling::test
