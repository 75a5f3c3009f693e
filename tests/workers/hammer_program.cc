// A worker that writes its snapshots slowly and reads outcomes again and again, while its rounds go
// on without it: no sum ever holds half a snapshot, and no outcome that is being read ever changes.
// Every outcome, also those that nobody picks up, is compared with its own row.
//     hammer_program VERSIONS
// Exit code 0: all right.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <thread>

#include "starling/base/error.h"
#include "starling/base/running.h"
#include "starling/comm/barrier.h"
#include "starling/comm/connect.h"
#include "starling/comm/rounds.h"
#include "starling/comm/snapshots.h"
#include "starling/topology/schedule.h"
#include "tests/workers/audited_toy.h"
#include "tests/workers/guarded.h"

namespace starling::test {
namespace {

constexpr std::size_t kElements = 4000;
constexpr int kReads = 20;

std::span<const double> values_of(comm::ConstBuffer buffer) {
  return {reinterpret_cast<const double*>(buffer.blob.data), buffer.elements()};
}

void expect_row(const comm::Outcome& outcome, comm::ConstBuffer result) {
  double sum = 0;
  for (std::size_t i = 0; i < outcome.members.size(); ++i) {
    sum += payload(outcome.members[i], outcome.steps[i]);
  }
  const double value = only_value(values_of(result), "an outcome");
  check(value == sum, "version {}: {}, not {}", outcome.version, value, sum);
}

// Snapshots, with every outcome looked at before it is handed on.
class Audited final : public comm::Contribution {
 public:
  Audited(comm::Engine& engine, comm::SnapshotOptions options) : snapshots(engine, options) {}
  bool has(comm::Version v) const override { return snapshots.has(v); }
  bool is_free() const override { return snapshots.is_free(); }
  Pass begin() override {
    pass_ = snapshots.begin();
    return pass_;
  }
  Task<void> end(comm::Outcome& outcome) override {
    check(outcome.version == ended, "version {} after {}", outcome.version, ended);
    ++ended;
    stale += outcome.own.value < static_cast<std::int64_t>(outcome.version) ? 1 : 0;
    expect_row(outcome, {pass_.out.type, pass_.out.blob});
    return snapshots.end(outcome);
  }
  void drop() override { snapshots.drop(); }

  comm::Snapshots snapshots;
  comm::Version ended = 0;
  std::uint64_t stale = 0;

 private:
  Pass pass_;
};

class Hammer {
 public:
  Hammer(comm::Workers& workers, std::uint64_t versions)
      : workers_(workers), versions_(versions), random_(Random(5, workers.rank().value)) {
    topology::ScheduleOptions options;
    options.workers = static_cast<std::uint32_t>(workers.size());
    schedule_ = topology::make_schedule("groups", options);
  }

  Task<void> run(comm::Engine& engine) {
    Audited audited(engine, snapshot_options());
    comm::Rounds rounds(engine, *schedule_, audited, rounds_options());
    co_await publish(audited.snapshots, comm::kInitial);
    Running<void> loop(rounds.run());
    for (comm::Version v = 0; v < versions_; ++v) {
      co_await publish(audited.snapshots, Step{static_cast<std::int64_t>(v)});
      rounds.arrived(v);
      co_await rounds.ended(v);
      co_await read(audited.snapshots, v);
    }
    const std::vector<Rank> everyone = workers_.everyone();
    co_await comm::barrier(engine, call(everyone));
    rounds.leave();
    co_await loop;
    check(audited.ended == versions_, "{} versions of {}", audited.ended, versions_);
    stale_ = audited.stale;
  }
  std::uint64_t stale() const { return stale_; }

 private:
  comm::SnapshotOptions snapshot_options() const {
    comm::SnapshotOptions options;
    options.shape = {comm::Type::Float64, kElements, false};
    return options;
  }
  comm::RoundsOptions rounds_options() const {
    comm::RoundsOptions options;
    options.trigger.when = comm::TriggerOptions::When::First;
    return options;
  }
  static comm::Call call(const std::vector<Rank>& everyone) {
    return {.id = 1, .members = everyone};
  }

  Task<void> publish(comm::Snapshots& snapshots, Step step) {
    const comm::Buffer into = snapshots.write();
    const std::uint64_t pause = random_.below(8) == 0 ? 3000 : random_.below(300);
    co_await workers_.apart([this, into, step, pause] {
      std::this_thread::sleep_for(std::chrono::microseconds(pause));
      write_slowly({reinterpret_cast<double*>(into.blob.data), into.elements()},
                   payload(workers_.rank(), step));
    });
    snapshots.publish(step);
  }

  Task<void> read(comm::Snapshots& snapshots, comm::Version v) {
    const auto picked = snapshots.pick_up(v);
    check(picked.has_value(), "version {} has no outcome", v);
    co_await workers_.apart([&picked] {
      for (int i = 0; i < kReads; ++i) {
        expect_row(*picked->outcome, picked->result);
        std::this_thread::yield();
      }
    });
    snapshots.release();
  }

  comm::Workers& workers_;
  std::uint64_t versions_;
  RandomSequence random_;
  std::unique_ptr<topology::Schedule> schedule_;
  std::uint64_t stale_ = 0;
};

int main_of(int argc, char** argv) {
  const auto workers = comm::connect();
  Hammer hammer(*workers, argc > 1 ? std::stoull(argv[1]) : 200);
  workers->run([&](comm::Engine& engine) { return hammer.run(engine); });
  fmt::print("{} of the own contributions were old ones\n", hammer.stale());
  return 0;
}

}  // namespace
}  // namespace starling::test

int main(int argc, char** argv) {
  return starling::test::guarded(starling::test::main_of, argc, argv);
}
