// exponential: one peer at distance 2^p, p = t mod ⌈log2 n⌉. When n is a power of two the peer is
// position XOR 2^p (symmetric pairs, exact after log2 n steps from any step on). Otherwise worker i
// sends to i + 2^p mod n and averages with what it receives: doubly stochastic, never exact.
//
// push: what SGP sends: at step t to the K distances 2^((t + j) mod ⌈log2 n⌉), j < K, everything at
// weight 1/(K + 1). Directed for every n; with K = 1 and n a power of two exact after log2 n steps.
#include <algorithm>
#include <bit>

#include "starling/base/error.h"
#include "starling/topology/makers.h"

namespace starling::topology {
namespace {

// ⌈log2 n⌉: the number of distances 1, 2, 4, … below n.
std::uint32_t distances(std::uint32_t n) {
  return n > 1 ? static_cast<std::uint32_t>(std::bit_width(n - 1)) : 0;
}

// i takes from i − d and gives to i + d for `count` distances d = 2^(first + j), cyclically.
Neighbours directed(Rank rank, const View& view, std::uint32_t first, std::uint32_t count) {
  const std::uint32_t n = view.count();
  const std::uint32_t all = distances(n);
  const std::uint32_t here = view.position(rank);
  const double weight = 1.0 / (count + 1);
  Neighbours row{weight, {}, {}};
  row.in.reserve(count);
  row.out.reserve(count);
  for (std::uint32_t j = 0; j < count; ++j) {
    const std::uint32_t distance = std::uint32_t{1} << ((first + j) % all);
    row.in.push_back({view.at((here + n - distance) % n), weight});
    row.out.push_back({view.at((here + distance) % n), weight});
  }
  const auto by_peer = [](const Edge& a, const Edge& b) { return a.peer < b.peer; };
  std::sort(row.in.begin(), row.in.end(), by_peer);
  std::sort(row.out.begin(), row.out.end(), by_peer);
  return row;
}

class Exponential : public Schedule {
 public:
  Row row(Step step, Rank rank, const View& view) const override {
    check(view.alive(rank), "rank {} is not in the view", rank);
    const std::uint32_t n = view.count();
    if (n == 1) {
      return uniform_group({rank});
    }
    const auto power = static_cast<std::uint32_t>(step.value % distances(n));
    if (!std::has_single_bit(n)) {
      return directed(rank, view, power, 1);
    }
    const Rank peer = view.at(view.position(rank) ^ (std::uint32_t{1} << power));
    return uniform_group({std::min(rank, peer), std::max(rank, peer)});
  }
  std::optional<std::int64_t> period(const View& view) const override {
    return std::max(distances(view.count()), 1u);
  }
};

class Push : public Schedule {
 public:
  explicit Push(std::uint32_t peers) : peers_(peers) {}

  Row row(Step step, Rank rank, const View& view) const override {
    check(view.alive(rank), "rank {} is not in the view", rank);
    const std::uint32_t all = distances(view.count());
    if (all == 0) {
      return uniform_group({rank});
    }
    const auto first = static_cast<std::uint32_t>(step.value % all);
    return directed(rank, view, first, std::min(peers_, all));
  }
  std::optional<std::int64_t> period(const View& view) const override {
    const std::uint32_t all = distances(view.count());
    return peers_ >= all ? 1 : all;
  }

 private:
  std::uint32_t peers_;
};

}  // namespace

std::unique_ptr<Schedule> make_exponential(const ScheduleOptions&) {
  return std::make_unique<Exponential>();
}

std::unique_ptr<Schedule> make_push(const ScheduleOptions& options) {
  const std::uint32_t most = std::max(distances(options.workers), 1u);
  require(options.peers >= 1 && (options.peers <= most || options.workers == 1),
          "{} peers: push among {} workers takes 1 to {}", options.peers, options.workers, most);
  return std::make_unique<Push>(options.peers);
}

}  // namespace starling::topology
