// One trial of a collective: everything random about it follows from (seed, workers), so that every
// worker, in whatever process, knows all inputs and can check its own result.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "starling/base/random.h"
#include "starling/base/units.h"
#include "starling/topology/neighbours.h"

namespace starling::test {

// The fixed tree, written down as plainly as possible: the left part is the largest power of two
// below the number of terms.
template <typename T>
T tree_sum(std::span<const T> terms);

class Trial {
 public:
  // Operations of the trial have ids from `first_id` on.
  Trial(std::uint64_t seed, std::size_t workers, std::size_t most_elements,
        std::uint64_t first_id = 0);

  std::size_t workers() const { return workers_; }
  std::size_t elements() const { return elements_; }
  std::uint64_t seed() const { return seed_; }
  std::uint64_t id(std::uint64_t n) const { return first_id_ + n; }
  // What workers found, as one number each: equal if all results were, bit by bit.
  void record(Rank rank, std::span<const std::byte> result);
  std::uint64_t digest(Rank rank) const;
  Rank root() const { return root_; }

  // What `rank` brings.
  template <typename T>
  const std::vector<T>& input(Rank rank);
  // The fixed-tree sum of what `members` bring.
  template <typename T>
  const std::vector<T>& sum(const std::vector<Rank>& members);
  // The same of what is left of it as bf16.
  template <typename T>
  const std::vector<T>& rounded_sum(const std::vector<Rank>& members);

  // The sum in double, and the sum of magnitudes, which bounds what rounding may do.
  struct Exact {
    std::vector<double> sum;
    std::vector<double> magnitude;
  };
  const Exact& exact(const std::vector<Rank>& members);

  std::vector<Rank> everyone() const;
  // The workers at random in disjoint groups; the group of `rank`, in rank order.
  std::vector<Rank> group_of(Rank rank) const;
  // A random directed graph with random weights; each worker's row and column of it.
  topology::Neighbours row_of(Rank rank) const;
  // The same graph with shares that sum to 1 for each sender.
  topology::Neighbours shares_of(Rank rank) const;
  double push_weight(Rank rank) const { return 0.5 + random_.stream(7).uniform(rank.value); }

 private:
  bool edge(Rank from, Rank to) const;
  double weight(Rank from, Rank to) const;
  std::size_t out_degree(Rank from) const;

  std::uint64_t seed_;
  std::uint64_t first_id_;
  std::map<std::uint32_t, std::uint64_t> digests_;
  std::size_t workers_;
  Random random_;
  std::size_t elements_;
  Rank root_;
  std::map<std::uint32_t, std::vector<float>> floats_;
  std::map<std::uint32_t, std::vector<double>> doubles_;
  std::map<std::vector<Rank>, Exact> exact_;
  std::map<std::vector<Rank>, std::vector<float>> float_sums_;
  std::map<std::vector<Rank>, std::vector<double>> double_sums_;
  std::map<std::vector<Rank>, std::vector<float>> rounded_float_sums_;
  std::map<std::vector<Rank>, std::vector<double>> rounded_double_sums_;
};

}  // namespace starling::test
