#include "tests/comm/audit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "starling/base/error.h"
#include "starling/base/running.h"

namespace starling::test {
namespace {

using comm::Outcome;
using comm::Snapshots;
using comm::TriggerOptions;
using comm::Version;

// What all workers contributed, while somebody may still ask.
class Register {
 public:
  struct Entry {
    Step step{};
    std::vector<float> values;
  };
  explicit Register(std::size_t workers) : workers_(workers) {}

  void contributes(Version v, Rank who, Entry entry) { versions_[v].by[who] = std::move(entry); }
  const Entry* find(Version v, Rank who) const {
    const auto version = versions_.find(v);
    if (version == versions_.end()) {
      return nullptr;
    }
    const auto entry = version->second.by.find(who);
    return entry == version->second.by.end() ? nullptr : &entry->second;
  }
  void ended(Version v) {
    if (++versions_[v].ended == workers_) {
      versions_.erase(v);
    }
  }

 private:
  struct OneVersion {
    std::map<Rank, Entry> by;
    std::size_t ended = 0;
  };
  std::size_t workers_;
  std::map<Version, OneVersion> versions_;
};

// Payloads, and how they are read.
class Code {
 public:
  explicit Code(const AuditCrew& crew) : crew_(crew) {}

  std::size_t elements() const {
    return crew_.bits ? 1 : crew_.workers * (crew_.accumulate ? crew_.steps : crew_.per_worker);
  }
  float value(Rank rank, Step step, std::size_t i) const {
    if (crew_.bits) {
      return static_cast<float>(1U << (3 * rank.value + bit(step)));
    }
    const std::size_t length = elements() / crew_.workers;
    if (i / length != rank.index()) {
      return 0;
    }
    return crew_.accumulate
               ? static_cast<float>(step == Step(static_cast<std::int64_t>(i % length)))
               : static_cast<float>(step.value + 2);
  }
  // What is wrong with a sum of these contributions; empty if nothing is.
  std::string read(std::span<const float> sum, const Outcome& outcome) const {
    if (crew_.accumulate) {
      return {};
    }
    for (std::uint32_t r = 0; r < crew_.workers; ++r) {
      const auto place = std::ranges::find(outcome.members, Rank{r});
      const bool member = place != outcome.members.end();
      const Step step =
          member ? outcome.steps[static_cast<std::size_t>(place - outcome.members.begin())]
                 : Step{};
      for (std::size_t i = 0; i < (crew_.bits ? 1 : crew_.per_worker); ++i) {
        const float found = crew_.bits ? bits_of(sum[0], r) : sum[r * crew_.per_worker + i];
        const float due = !member      ? 0.0F
                          : crew_.bits ? static_cast<float>(1U << bit(step))
                                       : static_cast<float>(step.value + 2);
        if (found != due) {
          return fmt::format("{} of worker {} where {} should be (element {})", found, r, due, i);
        }
      }
    }
    return {};
  }

 private:
  static unsigned bit(Step step) { return static_cast<unsigned>((step.value + 3) % 3); }
  static float bits_of(float sum, std::uint32_t rank) {
    return static_cast<float>((static_cast<std::uint32_t>(sum) >> (3 * rank)) & 7);
  }
  const AuditCrew& crew_;
};

std::span<const float> floats(comm::ConstBlob blob) {
  return {reinterpret_cast<const float*>(blob.data), blob.size / sizeof(float)};
}

struct Case {
  const AuditCrew& crew;
  const topology::Schedule& schedule;
  Code code;
  Register seen;
  Audited result;

  void found(std::string text) {
    if (result.findings.size() < 10) {
      result.findings.push_back(std::move(text));
    }
  }
};

// Stands between the rounds and the snapshots of a worker.
class Witness final : public comm::Contribution {
 public:
  Witness(Case& all, Rank rank, comm::Contribution& inner)
      : all_(all), rank_(rank), inner_(inner) {}

  bool has(Version v) const override { return inner_.has(v); }
  bool is_free() const override { return inner_.is_free(); }
  Pass begin() override {
    pass_ = inner_.begin();
    const auto in = floats(pass_.in.blob);
    all_.seen.contributes(next_, rank_, {pass_.step, {in.begin(), in.end()}});
    return pass_;
  }
  Task<void> end(Outcome& outcome) override {
    compare(outcome);
    all_.seen.ended(next_++);
    co_await inner_.end(outcome);
  }
  void drop() override { inner_.drop(); }
  void skipped(Version v) { next_ = v + 1; }

 private:
  void compare(const Outcome& outcome) {
    const auto out = floats(pass_.out.blob);
    const std::string where = fmt::format("version {} on worker {}", outcome.version, rank_);
    if (outcome.version != next_) {
      all_.found(fmt::format("{}: {} is next", where, next_));
    }
    std::vector<float> sum(out.size());
    for (std::size_t m = 0; m < outcome.members.size(); ++m) {
      const Register::Entry* entry = all_.seen.find(outcome.version, outcome.members[m]);
      if (entry == nullptr || entry->step != outcome.steps[m]) {
        return all_.found(fmt::format("{}: worker {} did not contribute step {}", where,
                                      outcome.members[m], outcome.steps[m].value));
      }
      if (!all_.crew.accumulate && entry->step > Step{static_cast<std::int64_t>(outcome.version)} &&
          all_.crew.rounds.trigger.when != TriggerOptions::When::OneSide) {
        all_.found(fmt::format("{}: step {} of worker {} is ahead of it", where, entry->step.value,
                               outcome.members[m]));
      }
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += entry->values[i];
      }
    }
    if (!std::ranges::equal(sum, out)) {
      all_.found(fmt::format("{}: the result is not the sum of what its members contributed: {}",
                             where, fmt::join(out, " ")));
    }
    if (std::string text = all_.code.read(out, outcome); !text.empty()) {
      all_.found(fmt::format("{}: {}", where, text));
    }
    std::vector<double>& gathered = all_.result.gathered[rank_.index()];
    gathered.resize(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      gathered[i] += out[i];
    }
    ++all_.result.audited;
  }

  Case& all_;
  Rank rank_;
  comm::Contribution& inner_;
  Pass pass_{};
  Version next_ = 0;
};

Duration duration(double seconds) { return std::chrono::duration_cast<Duration>(Seconds(seconds)); }

// The application of one worker.
class Auditee {
 public:
  Auditee(Case& all, comm::Engine& engine)
      : all_(all),
        engine_(engine),
        rank_(engine.rank()),
        snapshots_(engine, options(all)),
        witness_(all, rank_, snapshots_),
        rounds_(engine, all.schedule, witness_, all.crew.rounds, [this](const Outcome& outcome) {
          if (outcome.is_void) {
            witness_.skipped(outcome.version);
          }
          all_.result.outcomes[rank_.index()].push_back(outcome);
          all_.result.notes[rank_.index()].push_back(rounds_.notes_sent());
        }) {}

  Task<void> run() {
    if (!in_person(all_)) {
      co_await publish(comm::kInitial);
    }
    Running<void> loop(rounds_.run());
    const std::uint64_t steps = all_.crew.steps_of ? all_.crew.steps_of(rank_) : all_.crew.steps;
    for (std::uint64_t t = 0; t < steps; ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      co_await engine_.sleep_for(duration(all_.crew.pace(rank_, step)));
      // By need the result of a version is wanted one step later.
      if (all_.crew.rounds.trigger.when == TriggerOptions::When::Need) {
        co_await pick_up(step);
        co_await publish(step);
        rounds_.arrived(t + 1);
      } else {
        co_await publish(step);
        rounds_.arrived(t);
        co_await pick_up(step);
      }
    }
    rounds_.leave();
    co_await loop;
    all_.result.copies[rank_.index()] = snapshots_.copies();
  }

 private:
  static bool in_person(const Case& all) {
    return all.crew.rounds.trigger.when == TriggerOptions::When::All;
  }
  static comm::SnapshotOptions options(const Case& all) {
    return {.shape = {comm::Type::Float32, all.code.elements(), false},
            .in_person = in_person(all),
            .accumulate = all.crew.accumulate,
            .keep_outcomes = false};
  }

  // Writes slowly: half, a pause, the other half.
  Task<void> publish(Step step) {
    auto* values = reinterpret_cast<float*>(snapshots_.write().blob.data);
    const std::size_t elements = all_.code.elements();
    for (std::size_t i = 0; i < elements; ++i) {
      if (i == elements / 2 && step != comm::kInitial) {
        co_await engine_.sleep_for(duration(all_.crew.writing(rank_, step)));
      }
      const bool nothing = step == comm::kInitial && all_.crew.accumulate;
      values[i] = nothing ? 0 : all_.code.value(rank_, step, i);
    }
    snapshots_.publish(step);
  }

  Task<void> pick_up(Step step) {
    const Time asked = engine_.now();
    const auto v = static_cast<Version>(step.value);
    co_await rounds_.ended(v);
    comm::PickUp row;
    row.step = step;
    row.waited = engine_.now() - asked;
    const auto picked = snapshots_.pick_up(v);
    if (picked) {
      row.version = picked->outcome->version;
      row.late = picked->outcome->own != step;
      if (rounds_.is_sync(v) && picked->outcome->version != v) {
        all_.found(fmt::format("worker {} did not get sync {} but version {}", rank_, v,
                               picked->outcome->version));
      }
      look(*picked);
      const Duration time = duration(all_.crew.reading(rank_, step));
      if (time > Duration(0)) {
        co_await engine_.sleep_for(time);
        look(*picked);
      }
      snapshots_.release();
    }
    all_.result.pick_ups[rank_.index()].push_back(row);
  }

  void look(const Snapshots::Picked& picked) {
    const std::string text = all_.code.read(floats(picked.result.blob), *picked.outcome);
    if (!text.empty()) {
      all_.found(fmt::format("a reader of version {} on worker {}: {}", picked.outcome->version,
                             rank_, text));
    }
  }

  Case& all_;
  comm::Engine& engine_;
  Rank rank_;
  Snapshots snapshots_;
  Witness witness_;
  comm::Rounds rounds_;
};

Task<void> one_worker(Case& all, comm::Engine& engine) {
  Auditee auditee(all, engine);
  co_await auditee.run();
}

}  // namespace

Audited audit(const AuditCrew& crew) {
  topology::ScheduleOptions schedule_options;
  schedule_options.workers = static_cast<std::uint32_t>(crew.workers);
  schedule_options.group_size = crew.group_size;
  const auto schedule = topology::make_schedule(crew.schedule, schedule_options);
  Case all{crew, *schedule, Code(crew), Register(crew.workers), {}};
  all.result.outcomes.resize(crew.workers);
  all.result.pick_ups.resize(crew.workers);
  all.result.notes.resize(crew.workers);
  all.result.copies.resize(crew.workers);
  all.result.gathered.resize(crew.workers);
  sim::ClusterOptions options;
  options.network = crew.network;
  options.network.ports.workers = crew.workers;
  options.engine = crew.engine;
  sim::Cluster cluster(options);
  all.result.ends = cluster.run([&](comm::Engine& engine) { return one_worker(all, engine); });
  return std::move(all.result);
}

double Audited::stale_fraction() const {
  double rounds = 0;
  double stale = 0;
  for (const auto& of_one : outcomes) {
    for (const comm::Outcome& outcome : of_one) {
      const bool free = !outcome.is_void && !outcome.is_sync;
      rounds += free ? 1 : 0;
      stale += free && outcome.own < Step{static_cast<std::int64_t>(outcome.version)} ? 1 : 0;
    }
  }
  return rounds == 0 ? 0 : stale / rounds;
}

std::uint64_t Audited::voids() const {
  std::uint64_t count = 0;
  for (const auto& of_one : outcomes) {
    for (const comm::Outcome& outcome : of_one) {
      count += outcome.is_void ? 1 : 0;
    }
  }
  return count;
}

std::uint64_t Audited::notes_until(comm::Version v) const {
  std::uint64_t sum = 0;
  for (const std::vector<std::uint64_t>& of_one : notes) {
    sum += of_one.at(v);
  }
  return sum;
}

void expect_clean(const Audited& audited) {
  EXPECT_GT(audited.audited, 0U);
  for (const std::string& finding : audited.findings) {
    ADD_FAILURE() << finding;
  }
  for (std::size_t r = 0; r < audited.ends.size(); ++r) {
    EXPECT_EQ(text_of(audited.ends[r]), "") << "worker " << r;
    const std::vector<comm::Outcome>& outcomes = audited.outcomes[r];
    for (std::size_t v = 0; v < outcomes.size(); ++v) {
      ASSERT_EQ(outcomes[v].version, v) << "worker " << r;
    }
  }
}

Pace jitter(std::uint64_t seed, double spread) {
  return [random = Random(seed), spread](Rank r, Step s) {
    const auto index = static_cast<std::uint64_t>(s.value);
    return 1e-3 * (1 + spread * (2 * random.stream(r.value).uniform(index) - 1));
  };
}

Pace stragglers(std::uint64_t seed, double lateness) {
  return [random = Random(seed), lateness](Rank r, Step s) {
    const auto index = static_cast<std::uint64_t>(s.value);
    const double draw = random.stream(r.value).uniform(index);
    return 1e-3 * (1 + 0.02 * draw + (draw < 0.1 ? lateness : 0));
  };
}

Pace heavy_tails(std::uint64_t seed) {
  return [random = Random(seed)](Rank r, Step s) {
    const auto index = static_cast<std::uint64_t>(s.value);
    const double draw = random.stream(r.value).uniform(index);
    return 0.5e-3 * (draw < 0.01 ? 100 : draw < 0.1 ? 10 : 1 + draw);
  };
}

std::uint64_t versions_or(std::uint64_t few) {
  const char* text = std::getenv("STARLING_VERSIONS");
  return text == nullptr ? few : std::strtoull(text, nullptr, 10);
}

}  // namespace starling::test
