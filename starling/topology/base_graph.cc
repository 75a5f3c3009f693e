#include "starling/topology/base_graph.h"

#include <algorithm>
#include <limits>

#include "starling/base/error.h"
#include "starling/topology/factors.h"

namespace starling::topology {

BaseGraph::BaseGraph(std::uint32_t workers, std::uint32_t peers) {
  check(workers >= 1 && peers >= 1, "no base graph of {} workers and {} peers", workers, peers);
  const std::uint32_t base = std::min(peers, workers) + 1;
  std::uint32_t best = std::numeric_limits<std::uint32_t>::max();
  const auto consider = [&](std::uint32_t runs) {
    const auto factors = fewest_factors(runs, base);
    if (!factors) {
      return;
    }
    Simple simple = simple_graph(workers / runs, base - 1);
    const auto rounds = simple.rounds + static_cast<std::uint32_t>(factors->size());
    if (rounds < best) {
      best = rounds;
      runs_ = runs;
      run_factors_ = *factors;
      simple_ = std::move(simple);
    }
  };
  for (std::uint32_t d = 1; d <= workers / d; ++d) {
    if (workers % d == 0) {
      consider(workers / d);
      consider(d);
    }
  }
}

std::uint32_t BaseGraph::rounds() const {
  return simple_.rounds + static_cast<std::uint32_t>(run_factors_.size());
}

BaseGraph::Simple BaseGraph::simple_graph(std::uint32_t workers, std::uint32_t peers) {
  Simple graph{workers, peers + 1, {}, 0, 0};
  std::uint32_t block = 1;
  std::uint32_t digits = 0;
  for (; block <= workers / graph.base; block *= graph.base) {
    ++digits;
  }
  std::uint32_t begin = 0;
  for (;; block /= graph.base, --digits) {
    const std::uint32_t blocks = (workers - begin) / block;
    if (blocks > 0) {
      graph.sets.push_back({begin, blocks, block, digits});
      begin += blocks * block;
    }
    if (digits == 0) {
      break;
    }
  }
  const Set& first = graph.sets.front();
  graph.first_rounds = first.digits + (first.blocks > 1 ? 1 : 0);
  graph.rounds = graph.first_rounds + (graph.sets.size() > 1 ? 1 + first.digits : 0);
  return graph;
}

// Digit 0 … p − 1 of the number inside the block, or p: the number of the block.
BaseGraph::Move BaseGraph::hypercube_move(const Set& set, std::uint32_t base, std::uint32_t digit,
                                          std::uint32_t worker) {
  std::uint32_t stride = 1;
  for (std::uint32_t d = 0; d < digit; ++d) {
    stride *= base;
  }
  const std::uint32_t size = digit < set.digits ? base : set.blocks;
  const std::uint32_t mine = (worker - set.begin) / stride % size;
  return {false, worker - mine * stride, stride, size, 0};
}

BaseGraph::Move BaseGraph::exchange_move(const Simple& graph, std::size_t hub,
                                         std::uint32_t worker) {
  const Set& set = graph.sets[hub];
  const std::uint32_t size = set.blocks * set.block_size;
  const std::uint32_t rest = graph.workers - set.begin - size;
  const double weight = static_cast<double>(size) / set.blocks / (size + rest);
  if (worker >= set.begin + size) {
    return {true, worker - size, set.block_size, set.blocks, weight};
  }
  const std::uint32_t index = (worker - set.begin) % set.block_size;
  if (index >= rest) {
    return {false, worker, 1, 1, 0};
  }
  return {true, set.begin + size + index, 1, 1, weight};
}

BaseGraph::Move BaseGraph::simple_move(const Simple& graph, std::uint32_t round,
                                       std::uint32_t worker) {
  std::size_t mine = 0;
  while (mine + 1 < graph.sets.size() && graph.sets[mine + 1].begin <= worker) {
    ++mine;
  }
  const Set& set = graph.sets[mine];
  const std::uint32_t all_digits = set.digits + (set.blocks > 1 ? 1 : 0);
  if (round < graph.first_rounds) {
    return all_digits == 0 ? Move{false, worker, 1, 1, 0}
                           : hypercube_move(set, graph.base, round % all_digits, worker);
  }
  const std::uint32_t exchange = round - graph.first_rounds;
  if (exchange <= mine && exchange + 1 < graph.sets.size()) {
    return exchange_move(graph, exchange, worker);
  }
  // The last set has no exchange of its own: it goes on right after the last of the others.
  const std::uint32_t begin =
      static_cast<std::uint32_t>(mine) + (mine + 1 < graph.sets.size() ? 1 : 0);
  return set.digits == 0 ? Move{false, worker, 1, 1, 0}
                         : hypercube_move(set, graph.base, (exchange - begin) % set.digits, worker);
}

BaseGraph::Move BaseGraph::move(std::uint32_t round, std::uint32_t worker) const {
  const std::uint32_t inside = worker % simple_.workers;
  if (round < simple_.rounds) {
    Move move = simple_move(simple_, round, inside);
    move.first += worker - inside;
    return move;
  }
  std::uint32_t stride = simple_.workers;
  const std::uint32_t digit = round - simple_.rounds;
  for (std::uint32_t d = 0; d < digit; ++d) {
    stride *= run_factors_[d];
  }
  const std::uint32_t mine = worker / stride % run_factors_[digit];
  return {false, worker - mine * stride, stride, run_factors_[digit], 0};
}

}  // namespace starling::topology
