// aer, the alternating exponential ring: nodes of L workers average alone or two nodes together, so
// that in every step about half of the nodes use the network. For each exponent e < ⌈log2 n⌉ of the
// n live nodes there are two steps. The pairs of nodes at distance 2^e are walked in rising order
// by a counter that runs on over the exponents: even-numbered pairs join in the second step, odd
// ones in the first; who does not join averages inside its node.
//   n = 4:  I = inside, J = joint;  node 0 IJIJ, node 1 IJJI, node 2 JIIJ, node 3 JIJI
// When n is a power of two, exact after 2·log2 n steps (node sizes being equal). For other n, nodes
// left over at a distance are paired with their neighbour among the left over; at most one rests.
// Nodes of which nobody is alive are skipped; a node that lost workers averages with those it has.
#include <algorithm>
#include <bit>

#include "starling/base/error.h"
#include "starling/topology/makers.h"

namespace starling::topology {
namespace {

// The partner of one of n nodes at distance 2^e, and the number of the pair.
struct Pair {
  bool found = false;
  std::uint32_t partner = 0;
  std::uint32_t number = 0;
};

Pair pair_of(std::uint32_t node, std::uint32_t n, std::uint32_t e) {
  const std::uint32_t distance = std::uint32_t{1} << e;
  const std::uint32_t blocks = n >> (e + 1);
  const std::uint32_t rest = n & (2 * distance - 1);
  const std::uint32_t base = n - rest;  // whole blocks of two distances end here
  const std::uint32_t crossing = rest > distance ? rest - distance : 0;
  const std::uint32_t first = e * (n / 2);  // every exponent has ⌊n/2⌋ pairs
  const std::uint32_t low = node & (distance - 1);
  if (node < base || low < crossing) {
    return {true, node ^ distance, first + (node >> (e + 1)) * distance + low};
  }
  // Left over: a run of consecutive nodes.
  const std::uint32_t begin = base + crossing;
  const std::uint32_t end = crossing > 0 ? base + distance : n;
  const std::uint32_t place = node - begin;
  if (begin + (place ^ 1) >= end) {
    return {};
  }
  return {true, begin + (place ^ 1), first + blocks * distance + crossing + place / 2};
}

class Aer : public Schedule {
 public:
  explicit Aer(std::uint32_t per_node) : per_node_(per_node) {}

  Row row(Step step, Rank rank, const View& view) const override {
    check(view.alive(rank), "rank {} is not in the view", rank);
    const std::uint32_t n = live_nodes_below(view, view.workers() / per_node_);
    const std::uint32_t real = rank.value / per_node_;
    const std::uint32_t node = live_nodes_below(view, real);
    std::vector<Rank> members;
    append_node(view, real, members);
    if (n > 1) {
      const auto phase = static_cast<std::uint32_t>(step.value % (2 * exponents(n)));
      const Pair pair = pair_of(node, n, phase / 2);
      if (pair.found && pair.number % 2 != phase % 2) {
        append_node(view, live_node(view, pair.partner), members);
        if (pair.partner < node) {
          std::rotate(members.begin(), members.begin() + node_size(view, real), members.end());
        }
      }
    }
    return uniform_group(std::move(members));
  }

  std::optional<std::int64_t> period(const View& view) const override {
    const std::uint32_t n = live_nodes_below(view, view.workers() / per_node_);
    return n > 1 ? 2 * exponents(n) : 1;
  }

 private:
  static std::int64_t exponents(std::uint32_t n) {
    return static_cast<std::int64_t>(std::bit_width(n - 1));
  }
  std::uint32_t node_size(const View& view, std::uint32_t node) const {
    return view.below((node + 1) * per_node_) - view.below(node * per_node_);
  }
  void append_node(const View& view, std::uint32_t node, std::vector<Rank>& members) const {
    const auto begin = view.live().begin() + view.below(node * per_node_);
    members.insert(members.end(), begin, begin + node_size(view, node));
  }
  // Nodes before `node` with somebody alive. Walks the nodes only if workers were lost.
  std::uint32_t live_nodes_below(const View& view, std::uint32_t node) const {
    if (view.count() == view.workers()) {
      return node;
    }
    std::uint32_t live = 0;
    for (std::uint32_t j = 0; j < node; ++j) {
      live += node_size(view, j) > 0 ? 1 : 0;
    }
    return live;
  }
  // The k-th node with somebody alive.
  std::uint32_t live_node(const View& view, std::uint32_t k) const {
    if (view.count() == view.workers()) {
      return k;
    }
    std::uint32_t node = 0;
    for (std::uint32_t live = 0;; ++node) {
      live += node_size(view, node) > 0 ? 1 : 0;
      if (live > k) {
        return node;
      }
    }
  }

  std::uint32_t per_node_;
};

}  // namespace

std::unique_ptr<Schedule> make_aer(const ScheduleOptions& options) {
  require(options.workers % options.per_node == 0,
          "{} workers per node do not divide {} workers: aer needs nodes of equal size",
          options.per_node, options.workers);
  return std::make_unique<Aer>(options.per_node);
}

}  // namespace starling::topology
