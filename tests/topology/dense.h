// The whole mixing matrix of a step, dense, read from the workers' rows alone: the tests' own
// arithmetic, independent of the room's analysis. Workers are numbered by position in the view.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "starling/topology/schedule.h"

namespace starling::topology {

using Matrix = std::vector<std::vector<double>>;

inline Matrix identity(std::size_t n) {
  Matrix m(n, std::vector<double>(n, 0));
  for (std::size_t i = 0; i < n; ++i) {
    m[i][i] = 1;
  }
  return m;
}

inline Matrix multiply(const Matrix& a, const Matrix& b) {
  const std::size_t n = a.size();
  Matrix c(n, std::vector<double>(n, 0));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      if (a[i][k] != 0) {
        for (std::size_t j = 0; j < n; ++j) {
          c[i][j] += a[i][k] * b[k][j];
        }
      }
    }
  }
  return c;
}

inline double distance(const Matrix& a, const Matrix& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a.size(); ++j) {
      most = std::max(most, std::abs(a[i][j] - b[i][j]));
    }
  }
  return most;
}

inline Matrix averaging(std::size_t n) {
  return Matrix(n, std::vector<double>(n, 1.0 / static_cast<double>(n)));
}

inline Matrix transposed(const Matrix& a) {
  Matrix t = a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a.size(); ++j) {
      t[j][i] = a[i][j];
    }
  }
  return t;
}

// Asserts on the way what a row promises: sorted, alive, the worker itself where it belongs, and
// that groups and edges are as the other side sees them.
inline Matrix dense(const Schedule& schedule, Step step, const View& view) {
  const std::uint32_t n = view.count();
  Matrix in(n, std::vector<double>(n, 0));
  Matrix out(n, std::vector<double>(n, 0));
  for (std::uint32_t i = 0; i < n; ++i) {
    const Rank rank = view.at(i);
    const Row row = schedule.row(step, rank, view);
    if (const auto* group = std::get_if<Group>(&row)) {
      std::set<Rank> seen;
      for (const Rank member : group->members) {
        EXPECT_TRUE(view.alive(member));
        EXPECT_TRUE(seen.empty() || *seen.rbegin() < member) << "members out of order";
        seen.insert(member);
        EXPECT_EQ(schedule.row(step, member, view), row) << "members disagree on their group";
        const double weight = member == rank ? group->self_weight : group->other_weight();
        in[i][view.position(member)] = weight;
        out[view.position(member)][i] = weight;
      }
      EXPECT_TRUE(seen.contains(rank)) << rank.value << " is not in its own group";
      continue;
    }
    const auto& neighbours = std::get<Neighbours>(row);
    in[i][i] = out[i][i] = neighbours.self_weight;
    const auto copy = [&](const std::vector<Edge>& edges, auto cell) {
      for (std::size_t e = 0; e < edges.size(); ++e) {
        EXPECT_TRUE(view.alive(edges[e].peer));
        EXPECT_NE(edges[e].peer, rank);
        EXPECT_TRUE(e == 0 || edges[e - 1].peer < edges[e].peer) << "edges out of order";
        cell(view.position(edges[e].peer)) = edges[e].weight;
      }
    };
    copy(neighbours.in, [&](std::uint32_t j) -> double& { return in[i][j]; });
    copy(neighbours.out, [&](std::uint32_t j) -> double& { return out[j][i]; });
  }
  EXPECT_EQ(in, out) << "what is given is not what is taken";
  return in;
}

// Mean of squared deviations left of an i.i.d. start: ‖(I − J) P‖² / (n − 1).
inline double deviation_left(const Matrix& product) {
  const auto n = static_cast<double>(product.size());
  double sum = 0;
  for (std::size_t j = 0; j < product.size(); ++j) {
    double mean = 0;
    for (std::size_t i = 0; i < product.size(); ++i) {
      mean += product[i][j] / n;
    }
    for (std::size_t i = 0; i < product.size(); ++i) {
      sum += (product[i][j] - mean) * (product[i][j] - mean);
    }
  }
  return product.size() == 1 ? 0 : sum / (n - 1);
}

// Rounds from `first` on until everybody has the mean; none within `most`.
inline std::optional<std::int64_t> rounds_to_exact(const Schedule& schedule, const View& view,
                                                   std::int64_t first, std::int64_t most) {
  Matrix product = identity(view.count());
  for (std::int64_t round = 0; round <= most; ++round) {
    if (distance(product, averaging(view.count())) < 1e-12) {
      return round;
    }
    product = multiply(dense(schedule, Step{first + round}, view), product);
  }
  return std::nullopt;
}

// A view with each worker lost with the given probability, never all.
inline View random_view(std::uint32_t workers, double loss, std::mt19937& random) {
  std::bernoulli_distribution lost(loss);
  std::vector<Rank> live;
  for (std::uint32_t r = 0; r < workers; ++r) {
    if (!lost(random)) {
      live.push_back(Rank{r});
    }
  }
  if (live.empty()) {
    live.push_back(Rank{static_cast<std::uint32_t>(random() % workers)});
  }
  return View(workers, live);
}

}  // namespace starling::topology
