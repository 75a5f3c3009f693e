// The largest eigenvalue of a symmetric, positive semidefinite operator that is only known by what
// it does to a vector.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace starling::topology {

// `apply` overwrites its argument. Plain Lanczos: no vectors are kept, so that thousands of steps
// stay cheap; the copies that rounding adds do not move the largest value. Deterministic. Stops
// after `most_steps` at the latest, then with what it has: a bound from below.
double largest_eigenvalue(std::size_t size, const std::function<void(std::span<double>)>& apply,
                          std::size_t most_steps);

}  // namespace starling::topology
