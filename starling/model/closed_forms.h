// What can be said without walking the recurrences: exact special cases, bounds and limits. They
// check the walk, and explain it. Seconds; c and u are per bucket, in the order in which gradients
// become ready.
#pragma once

#include <cstdint>
#include <span>

namespace starling::model {

// A step's computation: T in the mean, φ of it forward, backward in shares (that add up to 1).
struct Computation {
  double mean = 1;
  double variance = 0;
  double forward = 1.0 / 3;
  std::span<const double> shares{};
};

// The mean of the largest of N standard normal values, m_N.
double expected_maximum(std::uint32_t count);

// All-reduce, T normal and independent: U + E[max_k(a_k M + S_k)], with a_k the part of T that has
// passed when bucket k is ready, M the largest T of all workers, S_k = c_k + … + c_b. With variance
// 0: U + max_k(a_k T + S_k). Throws Error{Input} if the lists differ in length.
double all_reduce_step(std::uint32_t workers, const Computation& computation,
                       std::span<const double> c, double update);

// What an all-reduce step lies between, whatever the distribution; `slowest` is E[M].
struct Bounds {
  double low = 0;
  double high = 0;
};
Bounds all_reduce_bounds(double slowest, const Computation& computation, std::span<const double> c,
                         double update);

// One step behind, all workers alike, every round with the same costs: the circuits of the event
// graph, max(T + U, Σ c_k, max_k(u_k + c_k)).
double behind_step(double compute, std::span<const double> c, std::span<const double> u);

// One step behind, one bucket, all workers alike, rounds with costs c_p by phase:
// u + mean_p max(T, c_p).
double behind_step_of_phases(double compute, std::span<const double> costs, double update);

// One step behind is at least that, whatever the schedule: E[T] + U, and what an engine is busy per
// step.
double behind_bound(double compute, double update, double engine);

// One bucket, all workers alike: what overlap alone can gain over all-reduce,
// (T + c + u) / (max(T, c) + u); at most 2, most where c = T.
double overlap_gain(double compute, double exchange, double update);

}  // namespace starling::model
