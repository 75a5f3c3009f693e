// The mixing matrix of one step, sparse: closed groups and single rows, by position in the view.
// Costs O(workers) for groups of any size, so that a step of thousands applies in microseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "starling/topology/schedule.h"

namespace starling::topology {

class Mixing {
 public:
  Mixing(const Schedule& schedule, Step step, const View& view);

  std::uint32_t workers() const { return workers_; }

  // x <- W x for `width` vectors at once: worker i has x[i·width … (i + 1)·width).
  void apply(std::span<double> x, std::size_t width) const;
  // x <- Wᵀ x.
  void apply_transposed(std::span<double> x, std::size_t width) const;

  struct GroupRow {
    std::vector<std::uint32_t> members;
    double self_weight = 1;
    double other_weight = 0;
  };
  struct Term {
    std::uint32_t from = 0;
    double weight = 0;
  };
  struct SingleRow {
    std::uint32_t worker = 0;
    std::vector<Term> terms;  // itself included
  };
  const std::vector<GroupRow>& groups() const { return groups_; }
  const std::vector<SingleRow>& singles() const { return singles_; }

  // Of the row (or column) whose sum is farthest from 1, that distance.
  double row_error() const;
  double column_error() const;

 private:
  void apply_groups(std::span<double> x, std::size_t width, std::vector<double>& sum) const;

  std::uint32_t workers_;
  std::vector<GroupRow> groups_;
  std::vector<SingleRow> singles_;
};

// Takes the mean over the workers off each of the `width` vectors.
void remove_mean(std::span<double> x, std::size_t width);

}  // namespace starling::topology
