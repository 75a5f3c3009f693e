#include "starling/topology/mixing.h"

#include <algorithm>
#include <cmath>

namespace starling::topology {
namespace {

void add(double* to, const double* from, double weight, std::size_t width) {
  for (std::size_t c = 0; c < width; ++c) {
    to[c] += weight * from[c];
  }
}

}  // namespace

Mixing::Mixing(const Schedule& schedule, Step step, const View& view) : workers_(view.count()) {
  std::vector<bool> grouped(workers_, false);
  for (std::uint32_t i = 0; i < workers_; ++i) {
    if (grouped[i]) {
      continue;
    }
    const Row row = schedule.row(step, view.at(i), view);
    if (const auto* group = std::get_if<Group>(&row)) {
      GroupRow& known = groups_.emplace_back();
      known.self_weight = group->self_weight;
      known.other_weight = group->other_weight();
      for (const Rank member : group->members) {
        known.members.push_back(view.position(member));
        grouped[known.members.back()] = true;
      }
      continue;
    }
    const auto& neighbours = std::get<Neighbours>(row);
    SingleRow& known = singles_.emplace_back();
    known.worker = i;
    known.terms.push_back({i, neighbours.self_weight});
    for (const Edge& edge : neighbours.in) {
      known.terms.push_back({view.position(edge.peer), edge.weight});
    }
  }
}

void Mixing::apply_groups(std::span<double> x, std::size_t width, std::vector<double>& sum) const {
  for (const GroupRow& group : groups_) {
    if (group.members.size() == 1) {
      continue;
    }
    std::fill_n(sum.begin(), width, 0.0);
    for (const std::uint32_t member : group.members) {
      add(sum.data(), &x[member * width], 1, width);
    }
    const double own = group.self_weight - group.other_weight;
    for (const std::uint32_t member : group.members) {
      double* row = &x[member * width];
      for (std::size_t c = 0; c < width; ++c) {
        row[c] = own * row[c] + group.other_weight * sum[c];
      }
    }
  }
}

void Mixing::apply(std::span<double> x, std::size_t width) const {
  std::vector<double> sum(width);
  apply_groups(x, width, sum);
  if (singles_.empty()) {
    return;
  }
  std::vector<double> mixed(singles_.size() * width, 0.0);
  for (std::size_t s = 0; s < singles_.size(); ++s) {
    for (const Term& term : singles_[s].terms) {
      add(&mixed[s * width], &x[term.from * width], term.weight, width);
    }
  }
  for (std::size_t s = 0; s < singles_.size(); ++s) {
    std::copy_n(&mixed[s * width], width, &x[singles_[s].worker * width]);
  }
}

void Mixing::apply_transposed(std::span<double> x, std::size_t width) const {
  std::vector<double> sum(width);
  apply_groups(x, width, sum);
  if (singles_.empty()) {
    return;
  }
  std::vector<double> given(x.size(), 0.0);
  for (const SingleRow& row : singles_) {
    for (const Term& term : row.terms) {
      add(&given[term.from * width], &x[row.worker * width], term.weight, width);
    }
  }
  for (const SingleRow& row : singles_) {
    std::copy_n(&given[row.worker * width], width, &x[row.worker * width]);
  }
}

double Mixing::row_error() const {
  double error = 0;
  for (const GroupRow& group : groups_) {
    const auto others = static_cast<double>(group.members.size() - 1);
    error = std::max(error, std::abs(group.self_weight + others * group.other_weight - 1));
  }
  for (const SingleRow& row : singles_) {
    double sum = 0;
    for (const Term& term : row.terms) {
      sum += term.weight;
    }
    error = std::max(error, std::abs(sum - 1));
  }
  return error;
}

double Mixing::column_error() const {
  std::vector<double> ones(workers_, 1.0);
  apply_transposed(ones, 1);
  double error = 0;
  for (const double sum : ones) {
    error = std::max(error, std::abs(sum - 1));
  }
  return error;
}

void remove_mean(std::span<double> x, std::size_t width) {
  std::vector<double> mean(width, 0.0);
  const std::size_t workers = x.size() / width;
  for (std::size_t i = 0; i < workers; ++i) {
    add(mean.data(), &x[i * width], 1.0 / static_cast<double>(workers), width);
  }
  for (std::size_t i = 0; i < workers; ++i) {
    add(&x[i * width], mean.data(), -1, width);
  }
}

}  // namespace starling::topology
