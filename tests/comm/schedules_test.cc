// Every collective at many worker counts, each under many seeded schedules: random delays,
// latencies that reorder pairs, random chunk lengths and windows, several workers per node; with
// workers that stop for a while, and with one that dies at a random event. STARLING_SCHEDULES sets
// how many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "starling/base/error.h"
#include "starling/sim/cluster.h"
#include "tests/comm/cases.h"
#include "tests/comm/trial.h"

namespace starling::test {
namespace {

std::uint64_t schedules() {
  const char* text = std::getenv("STARLING_SCHEDULES");
  return text == nullptr ? 100 : std::stoull(text);
}

struct Played {
  std::vector<std::exception_ptr> ends;
  std::uint64_t events = 0;
  std::uint64_t trace = 0;
  std::vector<std::string> lines;
};

sim::ClusterOptions options_of(std::uint64_t seed, std::size_t workers, bool one_node) {
  RandomSequence draw(Random(seed).stream(workers).stream(1));
  sim::ClusterOptions options;
  options.network.seed = seed;
  options.network.ports.workers = workers;
  options.network.ports.per_node = 1 + draw.below(4);
  if (one_node) {
    options.network.ports.per_node = workers;
  }
  options.network.ports.latency = 1e-6 * static_cast<double>(1 + draw.below(20));
  options.network.ports.bandwidth = 1e8 * static_cast<double>(1 + draw.below(100));
  options.network.jitter = draw.below(3) == 0 ? 0 : 1e-4 * draw.uniform();
  options.network.laziness = draw.below(4) != 0 ? 0 : 1e-4 * draw.uniform();
  constexpr std::size_t kChunks[] = {0, 64, 320, 4096, 16384, 262144};
  options.engine.chunk = kChunks[draw.below(6)];
  options.engine.window = 2 + draw.below(10);
  return options;
}

Task<void> delayed(comm::Engine& engine, Trial& trial, const Case& which, bool delays) {
  if (delays) {
    const Random draw = Random(trial.seed()).stream(trial.workers()).stream(2);
    co_await engine.sleep_for(Duration(draw.below(500'000, engine.rank().value)));
  }
  co_await which.run(engine, trial);
}

Played play(const Case& which, Trial& trial, const std::vector<sim::Fault>& faults, bool record) {
  sim::Cluster cluster(options_of(trial.seed(), trial.workers(), which.one_node));
  for (const sim::Fault& fault : faults) {
    cluster.network().plan(fault);
  }
  Played result;
  if (record) {
    cluster.network().record(result.lines);
  }
  const bool delays = trial.seed() % 3 != 0;
  result.ends =
      cluster.run([&](comm::Engine& engine) { return delayed(engine, trial, which, delays); });
  result.events = cluster.network().events();
  result.trace = cluster.network().trace_hash();
  return result;
}

std::string text_of(const std::exception_ptr& end) {
  try {
    std::rethrow_exception(end);
  } catch (const std::exception& e) {
    return e.what();
  }
}

ErrorCode code_of(const std::exception_ptr& end) {
  try {
    std::rethrow_exception(end);
  } catch (const Error& e) {
    return e.code();
  } catch (...) {
    return ErrorCode::Bug;
  }
}

class Schedules : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {
 protected:
  const Case& which() const { return cases()[std::get<0>(GetParam())]; }
  std::size_t workers() const { return std::get<1>(GetParam()); }
  // Large buffers at few workers; at 64 the number of messages is what matters.
  Trial trial(std::uint64_t seed) const {
    return {seed, workers(), workers() > 16 ? 1015u : 9001u};
  }
};

TEST_P(Schedules, EveryWorkerHasTheRightResult) {
  for (std::uint64_t seed = 0; seed < schedules(); ++seed) {
    Trial t = trial(seed);
    const Played r = play(which(), t, {}, false);
    for (const auto& end : r.ends) {
      ASSERT_FALSE(end) << which().name << " seed " << seed << ": " << text_of(end);
    }
  }
}

TEST_P(Schedules, StoppedWorkersOnlyDelay) {
  for (std::uint64_t seed = 0; seed < schedules() / 10 + 1; ++seed) {
    Trial t = trial(seed);
    RandomSequence draw(Random(seed).stream(workers()).stream(3));
    const std::uint64_t events = play(which(), t, {}, false).events;
    std::vector<sim::Fault> faults;
    for (int i = 0; i < 3; ++i) {
      const Rank victim{static_cast<std::uint32_t>(draw.below(workers()))};
      faults.push_back({draw.below(events + 1), victim, sim::FaultKind::Stop, draw.uniform()});
    }
    const Played r = play(which(), t, faults, false);
    for (const auto& end : r.ends) {
      ASSERT_FALSE(end) << which().name << " seed " << seed << ": " << text_of(end);
    }
  }
}

TEST_P(Schedules, ADeadWorkerIsNamedAndNobodyHangs) {
  for (std::uint64_t seed = 0; seed < schedules() / 2 + 1; ++seed) {
    Trial t = trial(seed);
    RandomSequence draw(Random(seed).stream(workers()).stream(4));
    const std::uint64_t events = play(which(), t, {}, false).events;
    const Rank victim{static_cast<std::uint32_t>(draw.below(workers()))};
    const Played r =
        play(which(), t, {{draw.below(events + 1), victim, sim::FaultKind::Die}}, false);
    for (std::uint32_t w = 0; w < workers(); ++w) {
      if (Rank{w} == victim || !r.ends[w]) {
        continue;
      }
      const std::string text = text_of(r.ends[w]);
      ASSERT_EQ(code_of(r.ends[w]), ErrorCode::Lost)
          << which().name << " seed " << seed << ": " << text;
      ASSERT_NE(text.find(fmt::format("worker {} was lost", victim)), std::string::npos) << text;
    }
  }
}

TEST_P(Schedules, ASeedReplaysToTheSameTrace) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Trial t = trial(seed);
    const Played a = play(which(), t, {{20, Rank{0}, sim::FaultKind::Die}}, true);
    const Played b = play(which(), t, {{20, Rank{0}, sim::FaultKind::Die}}, true);
    ASSERT_EQ(a.lines, b.lines);
    ASSERT_EQ(a.trace, b.trace);
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, Schedules,
                         testing::Combine(testing::Range<std::size_t>(0, cases().size()),
                                          testing::Values<std::size_t>(1, 2, 3, 4, 5, 8, 13, 64)),
                         [](const testing::TestParamInfo<Schedules::ParamType>& instance) {
                           return fmt::format("{}_{}", cases()[std::get<0>(instance.param)].name,
                                              std::get<1>(instance.param));
                         });

}  // namespace
}  // namespace starling::test
