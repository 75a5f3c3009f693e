#include "starling/sim/skew.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "starling/base/error.h"
#include "starling/base/running.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/comm/model_memory.h"
#include "starling/comm/rounds.h"
#include "starling/comm/snapshots.h"
#include "starling/sim/cluster.h"
#include "starling/topology/schedule.h"

namespace starling::sim {
namespace {

class Calls {
 public:
  Calls(comm::Engine& engine, const SkewOptions& options, const Apart& apart)
      : engine_(engine),
        options_(options),
        apart_(apart),
        shape_{comm::Type::Float32, options.bytes.value / sizeof(float), options.weightless},
        next_id_(1 + options.run * (4 * total() + 4)),
        model_(engine, shape_) {
    for (std::uint32_t r = 0; r < engine.size(); ++r) {
      everyone_.push_back(Rank{r});
    }
  }

  Task<void> fill() {
    co_await apart_([this] {
      const comm::Buffer model = model_.buffer();
      if (model.blob.data != nullptr) {
        std::fill_n(reinterpret_cast<float*>(model.blob.data), model.elements(),
                    static_cast<float>(engine_.rank().value));
      }
    });
  }

  Task<void> block(std::vector<double>& times) {
    const comm::ModelMemory result(engine_, shape_);
    const comm::ConstBuffer in = read(model_.buffer());
    for (std::uint64_t i = 0; i < total(); ++i) {
      const Time arrived = co_await arrive();
      co_await comm::all_reduce(engine_, call(), in, result.buffer());
      note(times, i, arrived);
    }
  }

  Task<void> avoid(std::vector<double>& times) {
    const auto schedule = topology::make_schedule("groups", schedule_options());
    comm::Snapshots snapshots(engine_, snapshot_options());
    comm::Rounds rounds(engine_, *schedule, snapshots, rounds_options());
    co_await publish(snapshots, comm::kInitial);
    Running<void> loop(rounds.run());
    for (comm::Version version = 0; version < total(); ++version) {
      const Time arrived = co_await arrive();
      co_await publish(snapshots, Step{static_cast<std::int64_t>(version)});
      rounds.arrived(version);
      co_await rounds.ended(version);
      check(snapshots.pick_up(version).has_value(), "version {} has no outcome", version);
      snapshots.release();
      note(times, version, arrived);
    }
    co_await comm::barrier(engine_, call());
    rounds.leave();
    co_await loop;
  }

 private:
  static comm::ConstBuffer read(const comm::Buffer& buffer) { return {buffer.type, buffer.blob}; }
  comm::Call call() { return {.id = next_id_++, .members = everyone_}; }
  std::uint64_t total() const {
    return static_cast<std::uint64_t>(options_.warmup) + static_cast<std::uint64_t>(options_.calls);
  }
  void note(std::vector<double>& times, std::uint64_t call, Time arrived) const {
    if (call >= static_cast<std::uint64_t>(options_.warmup)) {
      times.push_back(seconds(engine_.now() - arrived));
    }
  }

  topology::ScheduleOptions schedule_options() const {
    return {.workers = static_cast<std::uint32_t>(engine_.size())};
  }
  comm::SnapshotOptions snapshot_options() const {
    comm::SnapshotOptions options;
    options.shape = shape_;
    return options;
  }
  comm::RoundsOptions rounds_options() const {
    comm::RoundsOptions options;
    options.trigger.when = comm::TriggerOptions::When::First;
    options.series = options_.run;
    return options;
  }

  // When this worker has come.
  Task<Time> arrive() {
    co_await comm::barrier(engine_, call());
    const Seconds late(options_.spacing * static_cast<double>(engine_.rank().value));
    if (late > Seconds(0)) {
      co_await engine_.sleep_for(std::chrono::duration_cast<Duration>(late));
    }
    co_return engine_.now();
  }

  Task<void> publish(comm::Snapshots& snapshots, Step step) {
    const comm::Buffer into = snapshots.write();
    co_await apart_([this, into] { engine_.arithmetic().copy(into.blob, model_.buffer().blob); });
    snapshots.publish(step);
  }

  comm::Engine& engine_;
  const SkewOptions& options_;
  const Apart& apart_;
  comm::ModelShape shape_;
  std::uint64_t next_id_;
  comm::ModelMemory model_;
  std::vector<Rank> everyone_;
};

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

Task<void> one_worker(comm::Engine& engine, SkewOptions options, CallTimes& all) {
  const CallTimes own = co_await time_calls(engine, options, at_once);
  append(all.blocking, own.blocking);
  append(all.wait_avoiding, own.wait_avoiding);
}

}  // namespace

Task<void> at_once(std::function<void()> work) {
  work();
  co_return;
}

Task<CallTimes> time_calls(comm::Engine& engine, SkewOptions options, Apart apart) {
  CallTimes times;
  Calls calls(engine, options, apart);
  co_await calls.fill();
  co_await calls.block(times.blocking);
  co_await calls.avoid(times.wait_avoiding);
  co_return times;
}

CallTimes simulate_calls(const PortOptions& ports, SkewOptions options) {
  ClusterOptions cluster_options;
  cluster_options.network.ports = ports;
  cluster_options.payload = Payload::Weightless;
  options.weightless = true;
  Cluster cluster(cluster_options);
  CallTimes all;
  rethrow_first(
      cluster.run([&](comm::Engine& engine) { return one_worker(engine, options, all); }));
  return all;
}

double mean(const std::vector<double>& values) {
  check(!values.empty(), "the mean of nothing");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace starling::sim
