#include "starling/topology/lanczos.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "starling/base/random.h"

namespace starling::topology {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

// The tridiagonal matrix that Lanczos builds.
struct Tridiagonal {
  std::vector<double> diagonal;
  std::vector<double> beside;  // beside[i] between i and i + 1

  // Whether all eigenvalues are below x: all pivots of (T − x) are negative.
  bool all_below(double x) const {
    double pivot = diagonal[0] - x;
    for (std::size_t i = 1; i < diagonal.size() && pivot < 0; ++i) {
      pivot = diagonal[i] - x - beside[i - 1] * beside[i - 1] / pivot;
    }
    return pivot < 0;
  }

  double largest() const {
    double low = *std::max_element(diagonal.begin(), diagonal.end());
    double high = low;
    for (std::size_t i = 0; i < diagonal.size(); ++i) {  // Gershgorin
      const double left = i > 0 ? beside[i - 1] : 0;
      const double right = i + 1 < diagonal.size() ? beside[i] : 0;
      high = std::max(high, diagonal[i] + left + right);
    }
    for (int i = 0; i < 100 && high - low > 1e-16 * high; ++i) {
      const double middle = low + (high - low) / 2;
      (all_below(middle) ? high : low) = middle;
    }
    return high;
  }
};

}  // namespace

double largest_eigenvalue(std::size_t size, const std::function<void(std::span<double>)>& apply,
                          std::size_t most_steps) {
  RandomSequence random{Random(2)};
  std::vector<double> now(size);
  std::generate(now.begin(), now.end(), [&] { return random.normal(); });
  apply(now);  // into the range of the operator
  double length = std::sqrt(dot(now, now));
  if (!(length > 0)) {
    return 0;
  }
  std::vector<double> last(size, 0.0);
  std::vector<double> next;
  Tridiagonal t;
  double value = 0;
  int settled = 0;
  for (std::size_t step = 0; step < most_steps; ++step) {
    for (double& x : now) {
      x /= length;
    }
    next = now;
    apply(next);
    t.diagonal.push_back(dot(next, now));
    const double before = step > 0 ? t.beside.back() : 0;
    for (std::size_t i = 0; i < size; ++i) {
      next[i] -= t.diagonal.back() * now[i] + before * last[i];
    }
    length = std::sqrt(dot(next, next));
    if (step % 8 == 7 || length <= 1e-14 * t.diagonal[0] || step + 1 == most_steps) {
      const double better = t.largest();
      settled = better - value <= 1e-14 * better ? settled + 1 : 0;
      value = better;
      if (settled == 2 || length <= 1e-14 * value) {
        return value;
      }
    }
    t.beside.push_back(length);
    last.swap(now);
    now.swap(next);
  }
  return value;
}

}  // namespace starling::topology
