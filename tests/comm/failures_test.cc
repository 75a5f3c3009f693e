// Bad input and bad luck: every worker that waits gets an Error that names the operation and the
// worker at fault, soon; nobody hangs; inputs stay as they were; and the engines go on working.
// All of it twice: as contributions to all-reduces are, and as bf16.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/running.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/comm/broadcast.h"
#include "starling/comm/gather.h"
#include "starling/comm/neighbour_exchange.h"
#include "starling/comm/push_sum.h"
#include "starling/sim/cluster.h"
#include "tests/comm/trial.h"

namespace starling::comm {
namespace {

constexpr std::size_t kFew = 10;           // elements that travel in control messages
constexpr std::size_t kMany = 5000;        // and that do not
constexpr std::size_t kVeryMany = 20'000;  // nor all at once, as bf16 either
constexpr auto kMaxStall = std::chrono::seconds(1);
constexpr AllReduce kAlgorithms[] = {AllReduce::Doubling, AllReduce::Direct, AllReduce::Halving,
                                     AllReduce::Ring, AllReduce::Gather};

std::vector<Rank> ranks(std::initializer_list<std::uint32_t> values) {
  std::vector<Rank> result;
  for (std::uint32_t value : values) {
    result.push_back(Rank{value});
  }
  return result;
}

// What one worker does in a run.
struct Part {
  Kind kind = Kind::AllReduce;
  std::uint64_t id = 1;
  std::size_t elements = kFew;
  Type type = Type::Float32;
  AllReduce algorithm = AllReduce::Auto;
  std::optional<Precision> precision{};  // of an all-reduce; default: the test's
  std::vector<Rank> members = ranks({0, 1, 2, 3});
  Rank root{0};
  topology::Neighbours row{};
  double push_weight = 1;
  bool overlap = false;
  Duration start{0};   // when it begins
  Duration cancel{0};  // when its program has had enough, if ever
  std::exception_ptr reason = std::make_exception_ptr(Error(ErrorCode::Cancelled, "enough"));
};

Task<void> perform(Engine& engine, const Part& part, ConstBuffer in, Buffer out) {
  const Call call{.id = part.id, .members = part.members};
  switch (part.kind) {
    case Kind::Barrier:
      co_await barrier(engine, call);
      break;
    case Kind::Broadcast:
      co_await broadcast(engine, call, part.root, in, out);
      break;
    case Kind::AllReduce:
      co_await all_reduce(engine, call, in, out, part.algorithm,
                          part.precision.value_or(Precision::Full));
      break;
    case Kind::NeighbourExchange:
      co_await neighbour_exchange(engine, part.id, part.row, in, out);
      break;
    case Kind::PushSum:
      co_await push_sum(engine, part.id, part.row, part.push_weight, in, out);
      break;
    case Kind::Gather:
      co_await gather(engine, call, {out.blob.data, out.blob.size});
      break;
  }
}

Task<void> take_part(Engine& engine, Part part) {
  co_await engine.sleep_for(part.start);
  const std::size_t bytes = part.elements * size_of(part.type);
  std::vector<std::byte> in(2 * bytes + 1, std::byte{static_cast<unsigned char>(part.id)});
  const std::vector<std::byte> before = in;
  std::vector<std::byte> out(bytes + 1);
  std::byte* into = part.overlap ? in.data() + bytes / 2 : out.data();
  const ConstBuffer input{part.type, {in.data(), bytes}};
  const Buffer output{part.type, {into, bytes}};
  Running<void> running(perform(engine, part, input, output));
  std::exception_ptr failure;
  try {
    if (part.cancel > Duration(0)) {
      co_await engine.sleep_for(part.cancel);
      running.cancel(part.reason);
    }
    co_await running;
  } catch (...) {
    failure = std::current_exception();
  }
  check(in == before, "the input of worker {} was changed", engine.rank());
  if (failure) {
    std::rethrow_exception(failure);
  }
}

struct End {
  bool ok = true;
  ErrorCode code = ErrorCode::Bug;
  std::string text;
};

std::ostream& operator<<(std::ostream& stream, const End& end) {
  return stream << (end.ok ? "no error" : fmt::format("{}: {}", name_of(end.code), end.text));
}

End end_of(const std::exception_ptr& error) {
  try {
    if (error) {
      std::rethrow_exception(error);
    }
  } catch (const Error& e) {
    return {false, e.code(), e.what()};
  } catch (...) {
    return {false, ErrorCode::Bug, "not an Error"};
  }
  return {};
}

class Failures : public testing::TestWithParam<Precision> {
 protected:
  void make(std::size_t workers) {
    sim::ClusterOptions options;
    options.network.ports.workers = workers;
    options.engine = {.chunk = 4096, .window = 8, .max_stall = kMaxStall};
    cluster_ = std::make_unique<sim::Cluster>(options);
  }
  void SetUp() override { make(4); }

  sim::Cluster& cluster() { return *cluster_; }
  sim::Network& network() { return cluster_->network(); }

  // Runs a part on each worker that has one; the others do nothing.
  void play(std::map<std::uint32_t, Part> parts) {
    for (auto& [rank, part] : parts) {
      part.precision = part.precision.value_or(GetParam());
    }
    const auto program = [](Engine& engine,
                            const std::map<std::uint32_t, Part>& all) -> Task<void> {
      if (const auto own = all.find(engine.rank().value); own != all.end()) {
        co_await take_part(engine, own->second);
      }
    };
    ends_.clear();
    for (const auto& end : cluster().run([&](Engine& engine) { return program(engine, parts); })) {
      ends_.push_back(end_of(end));
    }
  }

  // The same on all workers, but for some.
  static std::map<std::uint32_t, Part> all_but(const Part& part,
                                               const std::map<std::uint32_t, Part>& others,
                                               std::uint32_t workers = 4) {
    std::map<std::uint32_t, Part> parts = others;
    for (std::uint32_t r = 0; r < workers; ++r) {
      parts.emplace(r, part);
    }
    return parts;
  }

  void expect_error(std::uint32_t rank, ErrorCode code, const std::vector<std::string>& texts) {
    const End& end = ends_.at(rank);
    EXPECT_FALSE(end.ok) << "worker " << rank << " should have failed";
    if (end.ok) {
      return;
    }
    EXPECT_EQ(name_of(end.code), name_of(code)) << "worker " << rank << " has " << end;
    for (const std::string& text : texts) {
      EXPECT_NE(end.text.find(text), std::string::npos)
          << "worker " << rank << " is not told '" << text << "' but has " << end;
    }
  }
  void expect_errors(const std::vector<std::uint32_t>& who, ErrorCode code,
                     const std::vector<std::string>& texts) {
    for (std::uint32_t rank : who) {
      expect_error(rank, code, texts);
    }
  }
  void expect_ok(const std::vector<std::uint32_t>& who) {
    for (std::uint32_t rank : who) {
      EXPECT_TRUE(ends_.at(rank).ok) << "worker " << rank << " has " << ends_.at(rank);
    }
  }
  // Whoever found out did so from a message, not from a stall.
  void expect_quick() {
    EXPECT_LT(seconds(network().now().time_since_epoch()), seconds(kMaxStall));
  }

  // The same engines still add up: everybody who is alive, both paths.
  void expect_they_go_on() {
    std::vector<Rank> living;
    for (std::uint32_t r = 0; r < cluster().size(); ++r) {
      if (!network().dead(Rank{r})) {
        living.push_back(Rank{r});
      }
    }
    const auto program = [](Engine& engine, std::vector<Rank> members,
                            std::uint64_t id) -> Task<void> {
      if (std::find(members.begin(), members.end(), engine.rank()) == members.end()) {
        co_return;
      }
      for (std::size_t elements : {kFew, kMany}) {
        const std::vector<double> in(elements, 1.0 + engine.rank().value);
        std::vector<double> out(elements);
        double sum = 0;
        for (Rank r : members) {
          sum += 1.0 + r.value;
        }
        const ConstBuffer input = comm::input(std::span(in));
        const Buffer output = comm::output(std::span(out));
        co_await all_reduce(engine, {.id = id++, .members = members}, input, output);
        for (double value : out) {
          check(value == sum, "{} instead of {}", value, sum);
        }
      }
    };
    next_id_ += 2;
    const auto ends =
        cluster().run([&](Engine& engine) { return program(engine, living, next_id_); });
    for (Rank r : living) {
      EXPECT_TRUE(end_of(ends[r.index()]).ok)
          << "afterwards worker " << r.value << " has " << end_of(ends[r.index()]);
    }
  }

  std::vector<End> ends_;

 private:
  std::unique_ptr<sim::Cluster> cluster_;
  std::uint64_t next_id_ = 1'000'000;
};

INSTANTIATE_TEST_SUITE_P(Precisions, Failures, testing::Values(Precision::Full, Precision::Bf16),
                         [](const testing::TestParamInfo<Precision>& instance) {
                           return instance.param == Precision::Full ? "Full" : "Bf16";
                         });

// A ring of 4, both ways.
topology::Neighbours ring_row(std::uint32_t rank) {
  topology::Neighbours row{.self_weight = 0.5, .in = {}, .out = {}};
  for (std::uint32_t peer : {(rank + 1) % 4, (rank + 3) % 4}) {
    row.in.push_back({Rank{peer}, 0.25});
    row.out.push_back({Rank{peer}, 0.25});
  }
  for (auto* edges : {&row.in, &row.out}) {
    std::sort(edges->begin(), edges->end(),
              [](const auto& a, const auto& b) { return a.peer < b.peer; });
  }
  return row;
}

std::map<std::uint32_t, Part> on_ring(Part part) {
  std::map<std::uint32_t, Part> parts;
  for (std::uint32_t r = 0; r < 4; ++r) {
    part.row = ring_row(r);
    parts[r] = part;
  }
  return parts;
}

// --- Workers that disagree ---------------------------------------------------------------------

TEST_P(Failures, MismatchedSizes) {
  struct Sizes {
    std::size_t most;
    std::size_t odd;
  };
  for (const Sizes sizes :
       {Sizes{kFew, kFew + 1}, Sizes{kMany, kMany + 1}, Sizes{kFew, kMany}, Sizes{kMany, kFew}}) {
    for (AllReduce algorithm : kAlgorithms) {
      SCOPED_TRACE(fmt::format("{}: {} and {}", name_of(algorithm), sizes.most, sizes.odd));
      make(4);
      play(all_but({.elements = sizes.most, .algorithm = algorithm},
                   {{2, {.elements = sizes.odd, .algorithm = algorithm}}}));
      expect_errors({0, 1, 2, 3}, ErrorCode::Mismatch,
                    {"all-reduce 1", "worker 2", fmt::format("of {} float32", sizes.most),
                     fmt::format("of {} float32", sizes.odd)});
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, MismatchedSizesOfNeighbours) {
  for (Kind kind : {Kind::NeighbourExchange, Kind::PushSum}) {
    for (std::size_t elements : {kFew, kMany}) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(kind), elements));
      make(4);
      auto parts = on_ring({.kind = kind, .elements = elements});
      parts[2].elements = elements + 1;
      play(parts);
      expect_errors({1, 2, 3}, ErrorCode::Mismatch,
                    {"worker 2", fmt::format("of {} float32", elements + 1)});
      EXPECT_TRUE(ends_[0].ok || ends_[0].code == ErrorCode::Mismatch) << ends_[0];
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, MismatchedTypesOfEqualBytes) {
  for (std::size_t doubles : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(algorithm), doubles));
      make(4);
      play(all_but({.elements = 2 * doubles, .type = Type::Float32, .algorithm = algorithm},
                   {{1, {.elements = doubles, .type = Type::Float64, .algorithm = algorithm}}}));
      expect_errors({0, 1, 2, 3}, ErrorCode::Mismatch,
                    {"all-reduce 1", "worker 1", "float32", "float64"});
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, MismatchedKinds) {
  for (std::size_t elements : {kFew, kMany}) {
    for (Kind kind : {Kind::Barrier, Kind::Broadcast, Kind::NeighbourExchange, Kind::PushSum}) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(kind), elements));
      make(4);
      play(all_but({.elements = elements},
                   {{2, {.kind = kind, .elements = elements, .row = ring_row(2)}}}));
      expect_errors({0, 1, 2, 3}, ErrorCode::Mismatch,
                    {" 1", "worker 2", "all-reduce", std::string(name_of(kind))});
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, MismatchedAlgorithms) {
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      for (AllReduce other : kAlgorithms) {
        if (algorithm == other) {
          continue;
        }
        SCOPED_TRACE(fmt::format("{} and {} of {}", name_of(algorithm), name_of(other), elements));
        make(4);
        play(all_but({.elements = elements, .algorithm = algorithm},
                     {{3, {.elements = elements, .algorithm = other}}}));
        expect_errors({0, 1, 2, 3}, ErrorCode::Mismatch,
                      {"all-reduce 1", "worker 3", "different algorithms"});
        expect_quick();
        expect_they_go_on();
      }
    }
  }
}

TEST_P(Failures, MismatchedPrecisions) {
  const Precision other = GetParam() == Precision::Full ? Precision::Bf16 : Precision::Full;
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(algorithm), elements));
      make(4);
      play(all_but({.elements = elements, .algorithm = algorithm},
                   {{3, {.elements = elements, .algorithm = algorithm, .precision = other}}}));
      expect_errors({0, 1, 2, 3}, ErrorCode::Mismatch,
                    {"all-reduce 1", "worker 3", "float32 as bf16"});
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, MismatchedChunkLengths) {
  sim::Network net({.ports = {.workers = 2}});
  const KernelArithmetic arithmetic;
  Engine a(net.endpoint(Rank{0}), arithmetic, {.chunk = 4096});
  Engine b(net.endpoint(Rank{1}), arithmetic, {.chunk = 8192});
  net.attach(a);
  net.attach(b);
  const Part part{.elements = kMany, .members = ranks({0, 1})};
  std::array<Running<void>, 2> both = {Running<void>(take_part(a, part)),
                                       Running<void>(take_part(b, part))};
  while (net.step()) {
  }
  for (const Running<void>& one : both) {
    ASSERT_TRUE(one.done());
    const End end = end_of(one.error());
    EXPECT_EQ(end.code, ErrorCode::Mismatch) << end;
    EXPECT_NE(end.text.find("chunk lengths"), std::string::npos) << end;
  }
}

TEST_P(Failures, MismatchedRootsOfABroadcast) {
  for (std::size_t elements : {kFew, kMany}) {
    for (std::uint32_t root : {1u, 2u, 3u}) {
      SCOPED_TRACE(fmt::format("{} elements, root {}", elements, root));
      make(4);
      play(all_but({.kind = Kind::Broadcast, .elements = elements},
                   {{2, {.kind = Kind::Broadcast, .elements = elements, .root = Rank{root}}}}));
      bool noticed = false;
      for (const End& end : ends_) {
        noticed = noticed || !end.ok;
        EXPECT_TRUE(end.ok || end.code == ErrorCode::Mismatch) << end;
      }
      EXPECT_TRUE(noticed) << "nobody was told that there are two roots";
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, ARootOutsideTheGroup) {
  play(all_but({.kind = Kind::Broadcast, .root = Rank{7}}, {}));
  expect_errors({0, 1, 2, 3}, ErrorCode::Input, {"broadcast", "worker 7"});
  expect_they_go_on();
}

// --- Groups ------------------------------------------------------------------------------------

TEST_P(Failures, AWorkerThatTheOthersDoNotCountIn) {
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(algorithm), elements));
      make(4);
      play(all_but({.elements = elements, .algorithm = algorithm, .members = ranks({0, 1, 2})},
                   {{3, {.elements = elements, .algorithm = algorithm}}}));
      expect_error(3, ErrorCode::Mismatch, {"all-reduce 1", "worker 3"});
      for (std::uint32_t r = 0; r < 3; ++r) {
        EXPECT_TRUE(ends_[r].ok || ends_[r].code == ErrorCode::Mismatch) << ends_[r];
      }
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, AWorkerThatTheOthersDoNotCountInAndThatComesWhenTheyHaveEnded) {
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(algorithm), elements));
      make(4);
      play(all_but({.elements = elements, .algorithm = algorithm, .members = ranks({0, 1, 2})},
                   {{3,
                     {.elements = elements,
                      .algorithm = algorithm,
                      .start = std::chrono::milliseconds(10)}}}));
      expect_ok({0, 1, 2});
      expect_error(3, ErrorCode::Mismatch, {"has ended all-reduce 1 without worker 3"});
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, AWorkerThatDoesNotCountItselfIn) {
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(algorithm), elements));
      make(4);
      play(all_but({.elements = elements, .algorithm = algorithm},
                   {{3, {.elements = elements, .algorithm = algorithm, .members = ranks({3})}}}));
      expect_ok({3});  // alone, it has nobody to wait for
      expect_errors({0, 1, 2}, ErrorCode::Mismatch, {"all-reduce 1", "worker 3"});
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, TwoGroupsThatOverlap) {
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(algorithm), elements));
      make(5);
      Part left{.elements = elements, .algorithm = algorithm, .members = ranks({0, 1, 2})};
      Part right = left;
      right.members = ranks({2, 3, 4});
      play({{0, left}, {1, left}, {2, left}, {3, right}, {4, right}});
      expect_errors({3, 4}, ErrorCode::Mismatch, {"all-reduce 1", "worker 2"});
      for (std::uint32_t r = 0; r < 3; ++r) {
        EXPECT_TRUE(ends_[r].ok || ends_[r].code == ErrorCode::Mismatch) << ends_[r];
      }
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, ARankThatDoesNotExist) {
  const std::vector<Rank> wrong = ranks({0, 1, 2, 3, 9});
  play(all_but({.members = wrong}, {}));
  expect_errors({0, 1, 2, 3}, ErrorCode::Input, {"all-reduce 1", "worker 9", "only 4 workers"});
  expect_they_go_on();
  make(4);
  play(all_but({}, {{2, {.members = wrong}}}));
  expect_errors({0, 1, 2, 3}, ErrorCode::Input, {"all-reduce 1", "worker 2", "worker 9"});
  expect_quick();
  expect_they_go_on();
}

TEST_P(Failures, MembersOutOfOrderOrTwice) {
  for (const std::vector<Rank>& wrong :
       {ranks({1, 0, 2, 3}), ranks({3, 2, 1, 0}), ranks({3, 0, 1, 2}), ranks({0, 1, 2, 2, 3}),
        ranks({0, 1, 2, 3, 3})}) {
    make(4);
    play(all_but({.members = wrong}, {}));
    expect_errors({0, 1, 2, 3}, ErrorCode::Input, {"all-reduce 1", "in rank order, each once"});
    expect_they_go_on();
    for (std::uint32_t odd = 0; odd < 4; ++odd) {
      make(4);
      play(all_but({}, {{odd, {.members = wrong}}}));
      expect_errors({0, 1, 2, 3}, ErrorCode::Input,
                    {"all-reduce 1", fmt::format("worker {}", odd), "in rank order"});
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, WhoIsNotAMemberIsTheOnlyOneToldSo) {
  for (std::size_t elements : {kFew, kMany}) {
    make(4);
    play(all_but({.elements = elements, .members = ranks({0, 1, 2})}, {}));
    expect_ok({0, 1, 2});
    expect_error(3, ErrorCode::Input, {"worker 3 is not in the group of all-reduce 1"});
    expect_they_go_on();
  }
}

TEST_P(Failures, AnEmptyGroup) {
  play({{1, {.members = {}}}});
  expect_error(1, ErrorCode::Input, {"worker 1 is not in the group"});
  expect_they_go_on();
}

// --- Buffers -----------------------------------------------------------------------------------

TEST_P(Failures, AnEmptyBufferOnOneWorker) {
  for (Kind kind : {Kind::AllReduce, Kind::Broadcast}) {
    for (std::size_t elements : {kFew, kMany}) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(kind), elements));
      make(4);
      play(all_but({.kind = kind, .elements = elements}, {{1, {.kind = kind, .elements = 0}}}));
      expect_error(1, ErrorCode::Input, {"the buffer is empty"});
      for (std::uint32_t r : {0u, 2u, 3u}) {
        EXPECT_TRUE(ends_[r].ok || ends_[r].text.find("worker 1") != std::string::npos) << ends_[r];
        EXPECT_TRUE(kind == Kind::Broadcast || !ends_[r].ok);
      }
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, EmptyBuffersEverywhere) {
  play(all_but({.elements = 0}, {}));
  expect_errors({0, 1, 2, 3}, ErrorCode::Input, {"all-reduce", "the buffer is empty"});
  expect_they_go_on();
}

TEST_P(Failures, InputAndOutputThatOverlap) {
  for (Kind kind : {Kind::AllReduce, Kind::NeighbourExchange, Kind::PushSum}) {
    for (std::size_t elements : {kFew, kMany}) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(kind), elements));
      make(4);
      auto parts = on_ring({.kind = kind, .elements = elements});
      parts[3].overlap = true;
      play(parts);
      expect_error(3, ErrorCode::Input, {"overlap"});
      expect_errors({0, 2}, ErrorCode::Input, {" 1", "worker 3", "overlap"});
      EXPECT_TRUE(ends_[1].ok ? kind != Kind::AllReduce : ends_[1].code == ErrorCode::Input);
      expect_quick();
      expect_they_go_on();
    }
  }
}

// --- Workers that do not come ------------------------------------------------------------------

TEST_P(Failures, AWorkerThatNeverArrivesIsNamed) {
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      for (std::uint32_t absent = 0; absent < 4; ++absent) {
        SCOPED_TRACE(fmt::format("{} of {} without {}", name_of(algorithm), elements, absent));
        make(4);
        const Part part{.elements = elements, .algorithm = algorithm};
        auto parts = all_but(part, {});
        parts.erase(absent);
        play(parts);
        for (std::uint32_t r = 0; r < 4; ++r) {
          if (r != absent) {
            expect_error(r, ErrorCode::Stalled,
                         {"all-reduce 1", "which awaits",
                          fmt::format("worker {} did not start it", absent)});
          }
        }
        EXPECT_LT(seconds(network().now().time_since_epoch()), 3);
        // It comes after all: too late, and it is told why.
        Part late = part;
        late.start = std::chrono::milliseconds(10);
        play({{absent, late}});
        expect_error(absent, ErrorCode::Stalled,
                     {"all-reduce 1", fmt::format("worker {} did not start it", absent)});
        expect_they_go_on();
      }
    }
  }
}

TEST_P(Failures, ANeighbourThatNeverArrivesIsNamed) {
  for (Kind kind : {Kind::NeighbourExchange, Kind::PushSum}) {
    for (std::size_t elements : {kFew, kMany}) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(kind), elements));
      make(4);
      auto parts = on_ring({.kind = kind, .elements = elements});
      parts.erase(3);
      play(parts);
      expect_errors({0, 2}, ErrorCode::Stalled,
                    {fmt::format("{} 1", name_of(kind)), "worker 3 did not start it"});
      // It needs nothing from worker 3; with several chunks it can be a victim of 0 and 2.
      EXPECT_TRUE(ends_[1].ok || (elements == kMany && ends_[1].code == ErrorCode::Stalled))
          << ends_[1];
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, ARootOrABarrierMemberThatNeverArrivesIsNamed) {
  for (std::size_t elements : {kFew, kMany}) {
    for (Kind kind : {Kind::Broadcast, Kind::Barrier}) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(kind), elements));
      make(4);
      auto parts = all_but({.kind = kind, .elements = elements}, {});
      parts.erase(0);
      play(parts);
      expect_errors({1, 2, 3}, ErrorCode::Stalled,
                    {fmt::format("{} 1", name_of(kind)), "worker 0 did not start it"});
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, SeveralThatNeverArriveAreAllNamed) {
  make(8);
  std::vector<Rank> members = ranks({0, 1, 2, 3, 4, 5, 6, 7});
  auto parts = all_but({.elements = kMany, .members = members}, {}, 8);
  parts.erase(3);
  parts.erase(6);
  play(parts);
  expect_errors({0, 1, 2, 4, 5, 7}, ErrorCode::Stalled, {"workers 3, 6 did not start it"});
  expect_they_go_on();
}

TEST_P(Failures, AStoppedWorkerDoesNotAnswer) {
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(algorithm), elements));
      make(4);
      network().plan(
          {.at_event = 0, .worker = Rank{2}, .kind = sim::FaultKind::Stop, .seconds = 100});
      play(all_but(
          {.elements = elements, .algorithm = algorithm, .start = std::chrono::milliseconds(1)},
          {}));
      expect_errors({0, 1, 3}, ErrorCode::Stalled, {"all-reduce 1", "worker 2 did not answer"});
      // When it goes on, all it needs may be there, and the bad news only behind it.
      EXPECT_TRUE(ends_[2].ok || ends_[2].code == ErrorCode::Stalled) << ends_[2];
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, AWorkerStoppedInTheMiddle) {
  for (AllReduce algorithm : kAlgorithms) {
    std::size_t failed = 0;
    for (std::uint64_t event = 0; event < 100; event += 9) {
      SCOPED_TRACE(fmt::format("{} at event {}", name_of(algorithm), event));
      make(4);
      network().plan(
          {.at_event = event, .worker = Rank{2}, .kind = sim::FaultKind::Stop, .seconds = 100});
      play(all_but({.elements = kVeryMany, .algorithm = algorithm}, {}));
      for (std::uint32_t r : {0u, 1u, 3u}) {
        if (!ends_[r].ok) {
          ++failed;
          expect_error(r, ErrorCode::Stalled, {"all-reduce 1", "worker 2 did not answer"});
        }
      }
      EXPECT_TRUE(ends_[2].ok || ends_[2].code == ErrorCode::Stalled) << ends_[2];
    }
    EXPECT_GT(failed, 0u);
  }
}

TEST_P(Failures, LateButInTimeIsNoFailure) {
  for (std::size_t elements : {kFew, kMany}) {
    make(4);
    play(all_but({.elements = elements},
                 {{1, {.elements = elements, .start = std::chrono::milliseconds(950)}}}));
    expect_ok({0, 1, 2, 3});
  }
}

TEST_P(Failures, ALateOneThatComesWhileTheOthersAskIsNoFailure) {
  for (std::size_t elements : {kFew, kMany}) {
    make(4);
    play(all_but({.elements = elements},
                 {{1, {.elements = elements, .start = std::chrono::milliseconds(1500)}}}));
    expect_ok({0, 1, 2, 3});
  }
}

// --- Lost workers ------------------------------------------------------------------------------

TEST_P(Failures, AWorkerLostBeforeTheStart) {
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      make(4);
      network().plan({.at_event = 0, .worker = Rank{1}});
      play(all_but(
          {.elements = elements, .algorithm = algorithm, .start = std::chrono::milliseconds(10)},
          {}));
      expect_errors({0, 2, 3}, ErrorCode::Lost, {"all-reduce 1", "worker 1 was lost"});
      expect_error(1, ErrorCode::Cancelled, {"worker 1"});
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, AWorkerLostBeforeTheStartOfAnExchange) {
  for (Kind kind : {Kind::NeighbourExchange, Kind::PushSum}) {
    make(4);
    network().plan({.at_event = 0, .worker = Rank{1}});
    play(on_ring({.kind = kind, .start = std::chrono::milliseconds(10)}));
    expect_errors({0, 2}, ErrorCode::Lost,
                  {fmt::format("{} 1", name_of(kind)), "worker 1 was lost"});
    expect_error(3, ErrorCode::Lost, {"worker 1 was lost"});  // passed on by 0 and 2
    expect_they_go_on();
  }
}

TEST_P(Failures, AWorkerLostWhileOthersWaitForIt) {
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(algorithm), elements));
      make(4);
      network().plan({.at_event = 2, .worker = Rank{1}});
      play(all_but({.elements = elements, .algorithm = algorithm},
                   {{1,
                     {.elements = elements,
                      .algorithm = algorithm,
                      .start = std::chrono::milliseconds(500)}}}));
      expect_errors({0, 2, 3}, ErrorCode::Lost, {"all-reduce 1", "worker 1 was lost", "awaited"});
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, AWorkerLostAtAnyMomentOfALargeReduction) {
  for (AllReduce algorithm : kAlgorithms) {
    std::size_t failed = 0;
    for (std::uint64_t event = 0; event < 120; event += 7) {
      make(4);
      network().plan({.at_event = event, .worker = Rank{2}});
      play(all_but({.elements = kVeryMany, .algorithm = algorithm}, {}));
      for (std::uint32_t r : {0u, 1u, 3u}) {
        if (!ends_[r].ok) {
          ++failed;
          expect_error(r, ErrorCode::Lost, {"all-reduce 1", "worker 2 was lost"});
        }
      }
      if (network().dead(Rank{2})) {
        expect_they_go_on();
      }
    }
    EXPECT_GT(failed, 0u);
  }
}

TEST_P(Failures, AWorkerLostAfterwardsIsNoFailureUntilItIsNeeded) {
  play(all_but({.elements = kMany}, {}));
  expect_ok({0, 1, 2, 3});
  network().die(Rank{3});
  play(all_but({.id = 2, .elements = kMany}, {}));
  expect_errors({0, 1, 2}, ErrorCode::Lost, {"all-reduce 2", "worker 3 was lost"});
  expect_they_go_on();
}

TEST_P(Failures, ALossConcernsOnlyTheGroupsOfTheLost) {
  for (std::size_t elements : {kFew, kMany}) {
    make(4);
    network().plan({.at_event = 0, .worker = Rank{3}});
    Part left{.elements = elements, .members = ranks({0, 1})};
    left.start = std::chrono::milliseconds(10);
    Part right = left;
    right.members = ranks({2, 3});
    play({{0, left}, {1, left}, {2, right}, {3, right}});
    expect_ok({0, 1});
    expect_error(2, ErrorCode::Lost, {"worker 3 was lost"});
  }
}

// --- Ids ---------------------------------------------------------------------------------------

TEST_P(Failures, AnIdUsedAgain) {
  for (std::size_t elements : {kFew, kMany}) {
    make(4);
    play(all_but({.elements = elements}, {}));
    expect_ok({0, 1, 2, 3});
    play(all_but({.elements = elements}, {}));
    expect_errors({0, 1, 2, 3}, ErrorCode::Input, {"operation 1", "used before"});
    expect_they_go_on();
  }
}

TEST_P(Failures, AnIdUsedAgainAfterAFailure) {
  for (std::uint32_t odd = 0; odd < 4; ++odd) {
    make(4);
    play(all_but({}, {{odd, {.members = ranks({0, 1, 2, 9})}}}));
    play(all_but({}, {}));
    for (std::uint32_t r = 0; r < 4; ++r) {
      expect_error(r, ErrorCode::Input, {"operation 1", "used before"});
    }
    expect_they_go_on();
  }
}

TEST_P(Failures, AnIdUsedTwiceAtTheSameTime) {
  for (std::size_t elements : {kFew, kMany}) {
    make(4);
    const auto program = [](Engine& engine, std::size_t n, int& refused) -> Task<void> {
      Running<void> first(take_part(engine, {.elements = n}));
      Running<void> second(take_part(engine, {.elements = n}));
      co_await first;
      try {
        co_await second;
      } catch (const Error& e) {
        refused += e.code() == ErrorCode::Input ? 1 : 0;
      }
    };
    int refused = 0;
    const auto ends =
        cluster().run([&](Engine& engine) { return program(engine, elements, refused); });
    for (const auto& end : ends) {
      EXPECT_TRUE(end_of(end).ok) << end_of(end);
    }
    EXPECT_EQ(refused, 4);
    expect_they_go_on();
  }
}

// --- Cancelling --------------------------------------------------------------------------------

TEST_P(Failures, AnOperationCancelledOnOneWorker) {
  for (std::size_t elements : {kFew, kMany}) {
    for (AllReduce algorithm : kAlgorithms) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(algorithm), elements));
      make(4);
      const Part part{.elements = elements, .algorithm = algorithm};
      Part late = part;
      late.start = std::chrono::milliseconds(500);
      Part tired = part;
      tired.cancel = std::chrono::milliseconds(100);
      play({{0, part}, {1, part}, {2, tired}, {3, late}});
      expect_error(2, ErrorCode::Cancelled, {"enough"});
      expect_errors({0, 1}, ErrorCode::Cancelled, {"all-reduce 1 failed on worker 2: enough"});
      // The word was there before it began.
      expect_error(3, ErrorCode::Cancelled, {"all-reduce 1 failed on worker 2: enough"});
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, AnExchangeCancelledOnOneWorker) {
  for (Kind kind : {Kind::NeighbourExchange, Kind::PushSum}) {
    for (std::size_t elements : {kFew, kMany}) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(kind), elements));
      make(4);
      auto parts = on_ring({.kind = kind, .elements = elements});
      parts[3].start = std::chrono::milliseconds(500);
      parts[2].cancel = std::chrono::milliseconds(100);
      play(parts);
      expect_error(2, ErrorCode::Cancelled, {"enough"});
      const std::string word = fmt::format("{} 1 failed on worker 2: enough", name_of(kind));
      expect_error(3, ErrorCode::Cancelled, {word});
      expect_error(0, ErrorCode::Cancelled, {word});  // passed on by worker 3
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, CancelledForAReasonOfAnotherType) {
  for (const std::exception_ptr& reason :
       {std::make_exception_ptr(std::runtime_error("out of paper")), std::make_exception_ptr(42)}) {
    make(4);
    Part tired{.cancel = std::chrono::milliseconds(100), .reason = reason};
    play({{0, {}}, {1, {}}, {2, tired}, {3, {.start = std::chrono::milliseconds(500)}}});
    EXPECT_FALSE(ends_[2].ok);
    expect_errors({0, 1, 3}, ErrorCode::Bug, {"all-reduce 1 failed on worker 2"});
    expect_quick();
    expect_they_go_on();
  }
}

TEST_P(Failures, AnAbortBeforeTheStartAlsoAnswersThoseWhoseMailComesLater) {
  // Worker 2 gives up before 0 and 1 begin; theirs is refused, and so is what 3 sends them.
  for (std::size_t elements : {kFew, kMany}) {
    make(4);
    Part tired{.elements = elements};
    tired.cancel = std::chrono::milliseconds(1);
    Part late{.elements = elements, .start = std::chrono::milliseconds(100)};
    play({{0, late}, {1, late}, {2, tired}, {3, {.elements = elements}}});
    expect_errors({0, 1, 2, 3}, ErrorCode::Cancelled, {"enough"});
    expect_quick();
    expect_they_go_on();
  }
}

// --- Neighbours --------------------------------------------------------------------------------

TEST_P(Failures, AnEdgeThatOnlyTheReceiverKnows) {
  for (Kind kind : {Kind::NeighbourExchange, Kind::PushSum}) {
    for (std::size_t elements : {kFew, kMany}) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(kind), elements));
      make(4);
      auto parts = on_ring({.kind = kind, .elements = elements});
      parts[0].row.in.insert(parts[0].row.in.begin() + 1, {Rank{2}, 0.5});
      play(parts);
      ASSERT_FALSE(ends_[0].ok);
      EXPECT_TRUE(ends_[0].code == ErrorCode::Stalled || ends_[0].code == ErrorCode::Mismatch)
          << ends_[0];
      expect_error(0, ends_[0].code, {fmt::format("{} 1", name_of(kind)), "worker 2"});
      for (const End& end : ends_) {
        EXPECT_TRUE(end.ok || end.code == ends_[0].code) << end;
      }
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, AnEdgeThatOnlyTheSenderKnows) {
  for (Kind kind : {Kind::NeighbourExchange, Kind::PushSum}) {
    for (std::size_t elements : {kFew, kMany}) {
      SCOPED_TRACE(fmt::format("{} of {}", name_of(kind), elements));
      make(4);
      auto parts = on_ring({.kind = kind, .elements = elements});
      parts[0].row.out.insert(parts[0].row.out.begin() + 1, {Rank{2}, 0.0});
      play(parts);
      expect_error(2, ErrorCode::Mismatch,
                   {fmt::format("{} 1", name_of(kind)), "worker 0", "worker 2",
                    "only one of them takes the other for a neighbour"});
      // What is small is sent and done with; nobody awaits an answer.
      EXPECT_TRUE(ends_[0].code == ErrorCode::Mismatch || (ends_[0].ok && elements == kFew))
          << ends_[0];
      expect_quick();
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, AnEdgeOneWayOnlyOnOneSide) {
  // 0 and 1 are neighbours for both, but 1 awaits what 0 does not send.
  for (std::size_t elements : {kFew, kMany}) {
    make(4);
    auto parts = on_ring({.kind = Kind::NeighbourExchange, .elements = elements});
    std::erase_if(parts[0].row.out, [](const topology::Edge& e) { return e.peer == Rank{1}; });
    play(parts);
    expect_error(1, ErrorCode::Stalled, {"neighbour exchange 1", "its model from worker 0"});
    for (const End& end : ends_) {
      EXPECT_TRUE(end.ok || end.code == ErrorCode::Stalled) << end;
    }
    expect_they_go_on();
  }
}

TEST_P(Failures, NeighboursOutOfOrderTwiceOrOneself) {
  const auto refused = [&](auto change, const std::string& text) {
    make(4);
    auto parts = on_ring({.kind = Kind::NeighbourExchange});
    change(parts[1].row);
    play(parts);
    expect_errors({0, 1, 2}, ErrorCode::Input, {text});
    expect_quick();
    expect_they_go_on();
  };
  using topology::Neighbours;
  refused([](Neighbours& row) { std::swap(row.in[0], row.in[1]); }, "in rank order, each once");
  refused([](Neighbours& row) { row.out.push_back(row.out.back()); }, "in rank order, each once");
  refused([](Neighbours& row) { row.in[1].peer = Rank{1}; }, "names itself");
  refused([](Neighbours& row) { row.in.push_back({Rank{9}, 0.1}); }, "worker 9");
}

TEST_P(Failures, SharesThatDoNotSumToOne) {
  for (std::size_t elements : {kFew, kMany}) {
    make(4);
    auto parts = on_ring({.kind = Kind::PushSum, .elements = elements});
    parts[1].row.self_weight = 0.6;
    play(parts);
    expect_errors({0, 1, 2}, ErrorCode::Input, {"the shares of worker 1 sum to 1.1, not 1"});
    EXPECT_TRUE(ends_[3].ok || ends_[3].code == ErrorCode::Input) << ends_[3];
    expect_quick();
    expect_they_go_on();
  }
}

TEST_P(Failures, WeightsThatAreNotNumbers) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (double bad : {kNaN, kInfinity}) {
    for (Kind kind : {Kind::NeighbourExchange, Kind::PushSum}) {
      for (int where = 0; where < 4; ++where) {
        if (where == 3 && kind != Kind::PushSum) {
          continue;
        }
        SCOPED_TRACE(fmt::format("{} in place {} of {}", bad, where, name_of(kind)));
        make(4);
        auto parts = on_ring({.kind = kind});
        Part& odd = parts[2];
        double* const places[] = {&odd.row.self_weight, &odd.row.in[0].weight,
                                  &odd.row.out[1].weight, &odd.push_weight};
        *places[where] = bad;
        play(parts);
        expect_errors({1, 2, 3}, ErrorCode::Input, {"weight", "worker"});
        expect_errors({1, 3}, ErrorCode::Input, {fmt::format("{} 1", name_of(kind))});
        expect_quick();
        expect_they_go_on();
      }
    }
  }
}

// --- And on ------------------------------------------------------------------------------------

// Whatever was sent for an operation that failed is acknowledged all the same: otherwise failures
// would use up the window.
TEST_P(Failures, ManyFailuresDoNotUseUpTheWindow) {
  struct Way {
    std::string name;
    std::function<void(Part& part)> spoil;
  };
  const std::vector<Way> ways = {
      {"a group that makes no sense", [](Part& p) { p.members = ranks({0, 1, 2, 3, 9}); }},
      {"not a member", [](Part& p) { p.members = ranks({0, 1, 3}); }},
      {"an empty buffer", [](Part& p) { p.elements = 0; }},
      {"another size", [](Part& p) { p.elements += 1; }},
      {"another algorithm", [](Part& p) { p.algorithm = AllReduce::Ring; }},
      {"overlap", [](Part& p) { p.overlap = true; }},
      {"late", [](Part& p) { p.start = std::chrono::microseconds(6); }},
  };
  for (std::size_t elements : {kFew, kMany}) {
    for (const Way& way : ways) {
      SCOPED_TRACE(fmt::format("{}, {} elements", way.name, elements));
      make(4);
      for (std::uint64_t id = 1; id <= 60; ++id) {
        Part part{.id = id, .elements = elements};
        Part odd = part;
        way.spoil(odd);
        if (way.name == "late") {
          // Worker 0 gives up at once. Worker 2 begins when it has heard of that, worker 3 before:
          // its mail comes to worker 2 afterwards.
          Part tired = part;
          tired.cancel = Duration(1);
          part.start = std::chrono::microseconds(3);
          play({{0, tired}, {1, part}, {2, odd}, {3, part}});
        } else {
          play(all_but(part, {{2, odd}}));
        }
      }
      expect_they_go_on();
    }
  }
}

TEST_P(Failures, AfterFailuresOfEveryKindAtOnceTheRestIsRight) {
  const auto program = [](Engine& engine) -> Task<void> {
    std::vector<Running<void>> all;
    const std::uint32_t self = engine.rank().value;
    for (std::uint64_t id = 1; id <= 12; ++id) {
      Part part{.id = id, .elements = id % 2 == 0 ? kFew : kMany};
      if (id % 3 == 0 && self == id % 4) {
        part.elements += 1;
      }
      all.emplace_back(take_part(engine, part));
    }
    for (std::uint64_t id = 1; id <= 12; ++id) {
      bool failed = false;
      try {
        co_await all[id - 1];
      } catch (const Error& e) {
        failed = true;
        check(e.code() == ErrorCode::Mismatch, "operation {}: {}", id, e.what());
      }
      check(failed == (id % 3 == 0), "operation {} failed {} on worker {}", id, failed, self);
    }
  };
  for (const auto& end : cluster().run(program)) {
    EXPECT_TRUE(end_of(end).ok) << end_of(end);
  }
  expect_they_go_on();
}

}  // namespace
}  // namespace starling::comm
