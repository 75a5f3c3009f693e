// The protocols in virtual time against the closed forms of comm/cost.h.
#include "starling/sim/collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "starling/base/error.h"

namespace starling::sim {
namespace {

using comm::AllReduce;

constexpr CollectiveKind kKinds[] = {CollectiveKind::AllReduce, CollectiveKind::Ring,
                                     CollectiveKind::Group,     CollectiveKind::Neighbour,
                                     CollectiveKind::Push,      CollectiveKind::Broadcast,
                                     CollectiveKind::Barrier};
constexpr AllReduce kAlgorithms[] = {AllReduce::Doubling, AllReduce::Direct, AllReduce::Halving,
                                     AllReduce::Ring, AllReduce::Gather};
constexpr std::size_t kWorkers[] = {1, 2, 3, 4, 5, 8, 13, 16, 64};
constexpr std::uint64_t kBytes[] = {4, 1000, 4000, 100'000, 1'000'000, 10'000'000};

CollectiveOptions options_of(CollectiveKind kind, std::size_t workers, std::uint64_t bytes) {
  CollectiveOptions options;
  options.kind = kind;
  options.bytes = {bytes};
  options.group_size = std::min<std::size_t>(8, workers);
  options.network.ports.workers = workers;
  return options;
}

const WorkerResult& busiest(const CollectiveResult& result) {
  return *std::max_element(
      result.workers.begin(), result.workers.end(),
      [](const WorkerResult& a, const WorkerResult& b) { return a.bytes_sent < b.bytes_sent; });
}

// Time within 2 %; bytes too, apart from what the headers of its messages take.
void hold_against_closed_form(const CollectiveOptions& options) {
  const CollectiveResult result = simulate(options);
  const std::string what =
      fmt::format("{} ({}) of {} bytes among {}", name_of(options.kind), name_of(result.algorithm),
                  options.bytes.value, options.network.ports.workers);
  ASSERT_TRUE(result.closed_form_applies) << what;
  const double seconds = result.closed_form.seconds;
  EXPECT_NEAR(result.seconds, seconds, 0.02 * seconds) << what;
  if (options.kind == CollectiveKind::Barrier) {
    return;
  }
  const double bytes = result.closed_form.bytes;
  const double sent = static_cast<double>(busiest(result).bytes_sent);
  const double messages = static_cast<double>(busiest(result).messages_sent);
  EXPECT_GE(sent, 0.98 * bytes) << what;
  EXPECT_LE(sent, 1.02 * bytes + 64 * messages) << what;
}

class ClosedForms : public testing::TestWithParam<std::size_t> {};

TEST_P(ClosedForms, EveryKindTakesTheTimeAndTheBytesItShould) {
  for (CollectiveKind kind : kKinds) {
    for (std::uint64_t bytes : kBytes) {
      hold_against_closed_form(options_of(kind, GetParam(), bytes));
    }
  }
}

TEST_P(ClosedForms, EveryAlgorithmTakesTheTimeAndTheBytesItShould) {
  for (AllReduce algorithm : kAlgorithms) {
    for (std::uint64_t bytes : kBytes) {
      // Short segments of unequal length in control messages: nobody's choice, and the virtual
      // network's cards take such a batch in the order of posting (docs/simulation.md).
      if (algorithm == AllReduce::Direct && bytes > 4056 &&
          comm::choose(GetParam(), bytes) != AllReduce::Direct) {
        continue;
      }
      CollectiveOptions options = options_of(CollectiveKind::AllReduce, GetParam(), bytes);
      options.algorithm = algorithm;
      hold_against_closed_form(options);
    }
  }
}

// The same with contributions as bf16.
TEST_P(ClosedForms, Bf16TakesTheTimeAndTheBytesItShould) {
  for (AllReduce algorithm :
       {AllReduce::Auto, AllReduce::Doubling, AllReduce::Halving, AllReduce::Gather}) {
    for (std::uint64_t bytes : kBytes) {
      // Pieces in control messages, results not: as above.
      if (algorithm == AllReduce::Auto && bytes > 4056 && bytes / 2 / GetParam() <= 4056 &&
          comm::choose(GetParam(), bytes, 2) == AllReduce::Direct) {
        continue;
      }
      CollectiveOptions options = options_of(CollectiveKind::AllReduce, GetParam(), bytes);
      options.algorithm = algorithm;
      options.precision = comm::Precision::Bf16;
      hold_against_closed_form(options);
    }
  }
}

TEST_P(ClosedForms, PushToSeveralPeers) {
  for (std::uint64_t bytes : kBytes) {
    CollectiveOptions options = options_of(CollectiveKind::Push, GetParam(), bytes);
    options.peers = 3;
    hold_against_closed_form(options);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, ClosedForms, testing::ValuesIn(kWorkers));

TEST(Collective, EveryKindIsVerifiedWithRealNumbers) {
  for (CollectiveKind kind : kKinds) {
    for (std::size_t workers : {1u, 2u, 5u, 16u}) {
      for (std::uint64_t bytes : {4u, 4000u, 40'000u}) {
        CollectiveOptions options = options_of(kind, workers, bytes);
        options.verify = true;
        options.engine.chunk = 1000;
        options.network.jitter = 1e-5;
        EXPECT_NO_THROW(simulate(options)) << name_of(kind) << " " << workers << " " << bytes;
        options.precision = comm::Precision::Bf16;
        EXPECT_NO_THROW(simulate(options)) << name_of(kind) << " " << workers << " " << bytes;
      }
    }
  }
}

// What leaves a node has been summed in it: its card carries 2 (H - 1)/H of the bytes for H nodes,
// not that times its workers.
TEST(Collective, NodesOfSeveralWorkersSumBeforeTheySend) {
  for (const auto& [nodes, per_node] : {std::pair{2u, 2u}, {4u, 2u}, {4u, 4u}, {8u, 8u}}) {
    CollectiveOptions options =
        options_of(CollectiveKind::AllReduce, nodes * per_node, 100'000'000);
    options.network.ports.per_node = per_node;
    options.network.ports.bandwidth = 1e9;
    options.network.ports.local_bandwidth = 1e11;
    const CollectiveResult result = simulate(options);
    EXPECT_EQ(result.algorithm, AllReduce::Halving);
    const double ideal = 2.0 * (nodes - 1) / nodes * 1e8 / 1e9;
    EXPECT_GT(result.seconds, ideal);
    EXPECT_LT(result.seconds, 1.05 * ideal) << nodes << " nodes of " << per_node;
  }
}

TEST(Collective, TheAlgorithmThatRanIsTold) {
  CollectiveOptions options = options_of(CollectiveKind::AllReduce, 4, 1000);
  EXPECT_EQ(simulate(options).algorithm, comm::choose(4, 1000));
  options.bytes = {1'000'000};
  EXPECT_EQ(simulate(options).algorithm, comm::choose(4, 1'000'000));
  options.algorithm = AllReduce::Halving;
  EXPECT_EQ(simulate(options).algorithm, AllReduce::Halving);
  options.kind = CollectiveKind::Ring;
  EXPECT_EQ(simulate(options).algorithm, AllReduce::Ring);
}

TEST(Collective, TheWaitForALateWorkerIsChargedToIt) {
  for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::Barrier}) {
    CollectiveOptions options = options_of(kind, 8, 100'000);
    options.late = {{Rank{3}, 0.5}};
    const CollectiveResult result = simulate(options);
    EXPECT_FALSE(result.closed_form_applies);
    EXPECT_GE(result.seconds, 0.5);
    EXPECT_LT(result.seconds, 0.501);
    EXPECT_EQ(result.workers[3].arrived, 0.5);
    double direct = 0;
    for (std::size_t r = 0; r < 8; ++r) {
      double waited = 0;
      for (const comm::Wait& wait : result.workers[r].waits) {
        waited += seconds(wait.time);
        direct = std::max(direct, wait.peer == Rank{3} ? seconds(wait.time) : 0);
      }
      EXPECT_LE(waited, 0.501);
      EXPECT_EQ(waited > 0.49, r != 3) << "worker " << r << " waited " << waited;
    }
    EXPECT_GT(direct, 0.49);
  }
}

TEST(Collective, InADirectAllReduceEveryoneWaitsForTheLateOneAndNobodyElse) {
  CollectiveOptions options = options_of(CollectiveKind::AllReduce, 6, 1'000'000);
  options.algorithm = AllReduce::Direct;
  options.late = {{Rank{2}, 0.5}};
  const CollectiveResult result = simulate(options);
  for (std::size_t r = 0; r < 6; ++r) {
    for (const comm::Wait& wait : result.workers[r].waits) {
      EXPECT_EQ(seconds(wait.time) > 0.49, wait.peer == Rank{2} && r != 2);
    }
  }
}

TEST(Collective, SharedCardsAndJitterTakeLongerThanTheClosedForm) {
  CollectiveOptions options = options_of(CollectiveKind::AllReduce, 8, 1'000'000);
  options.network.ports.local_bandwidth = options.network.ports.bandwidth;
  options.network.ports.local_latency = options.network.ports.latency;
  options.network.ports.per_node = 4;
  options.algorithm = AllReduce::Direct;
  const CollectiveResult shared = simulate(options);
  EXPECT_FALSE(shared.closed_form_applies);
  EXPECT_GT(shared.seconds, 1.5 * shared.closed_form.seconds);
  options.network.ports.per_node = 1;
  options.network.jitter = 1e-3;
  const CollectiveResult jittery = simulate(options);
  EXPECT_FALSE(jittery.closed_form_applies);
  EXPECT_GT(jittery.seconds, jittery.closed_form.seconds);
}

TEST(Collective, ASeedIsARun) {
  CollectiveOptions options = options_of(CollectiveKind::AllReduce, 8, 100'000);
  options.network.jitter = 1e-4;
  const CollectiveResult a = simulate(options);
  const CollectiveResult b = simulate(options);
  options.network.seed = 2;
  const CollectiveResult c = simulate(options);
  EXPECT_EQ(a.trace, b.trace);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_NE(a.trace, c.trace);
}

TEST(Collective, OptionsThatMakeNoSenseAreRefused) {
  const auto refused = [](auto change) {
    CollectiveOptions options = options_of(CollectiveKind::AllReduce, 4, 1000);
    change(options);
    try {
      simulate(options);
    } catch (const Error& e) {
      return e.code() == ErrorCode::Input;
    }
    return false;
  };
  EXPECT_TRUE(refused([](CollectiveOptions& o) { o.bytes = {0}; }));
  EXPECT_TRUE(refused([](CollectiveOptions& o) { o.bytes = {5}; }));
  EXPECT_TRUE(refused([](CollectiveOptions& o) { o.group_size = 0; }));
  EXPECT_TRUE(refused([](CollectiveOptions& o) { o.group_size = 5; }));
  EXPECT_TRUE(refused([](CollectiveOptions& o) { o.late = {{Rank{4}, 1}}; }));
  EXPECT_TRUE(refused([](CollectiveOptions& o) { o.late = {{Rank{1}, -1}}; }));
  EXPECT_TRUE(refused([](CollectiveOptions& o) { o.network.ports.workers = 0; }));
  EXPECT_TRUE(refused([](CollectiveOptions& o) {
    o.kind = CollectiveKind::Push;
    o.peers = 0;
  }));
  EXPECT_TRUE(refused([](CollectiveOptions& o) { o.engine.window = 1; }));
}

// Its neighbour's result may come first: that is not whom everybody waited for.
TEST(Waiting, TheLateWorkerIsChargedNotTheFirstToAnswerIt) {
  CollectiveOptions options = options_of(CollectiveKind::AllReduce, 13, 1'000'000);
  options.late = {{Rank{5}, 0.01}};
  options.network.jitter = 1e-4;
  const CollectiveResult result = simulate(options);
  for (std::uint32_t r = 0; r < 13; ++r) {
    if (r == 5) {
      continue;
    }
    double charged = 0;
    for (const comm::Wait& wait : result.workers[r].waits) {
      charged += wait.peer == Rank{5} ? seconds(wait.time) : 0;
    }
    EXPECT_NEAR(charged, 0.01, 0.0005) << "worker " << r;
  }
}

}  // namespace
}  // namespace starling::sim
