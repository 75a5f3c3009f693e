// One pass over a piece of a model: mix, decay, moments, update, snapshot. What an optimizer step
// of training costs is what memory costs: every stream is touched once.
//
//   x     = of_from * from + of_result * result      (the result of a round; if there is none:
//   from)
//           or, of a result whose contributions were rounded to bf16 on their way,
//           (from + of_result * result) - (1 - of_from) * bf16(from)
//   g     = gradient_scale * gradient
//   into  = copy = x - update(g, state)
//
// Every operation is rounded by itself, nothing is fused (the same bits on every instruction set,
// and as a plain loop compiled without contraction; of a NaN only that it is one). Any length, any
// alignment of elements. `into` and `copy` may be `from`; otherwise nothing overlaps.
//
// Returns whether all that was written, state too, is finite. Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::kernels {

template <typename T>
struct Streams {
  std::size_t size = 0;
  const T* from = nullptr;
  T* into = nullptr;
  T* copy = nullptr;          // or nothing
  const T* result = nullptr;  // or nothing: then of_from is 1
  T of_from = 1;
  T of_result = 0;
  bool rounded = false;         // contributions were rounded: the delta form
  const T* gradient = nullptr;  // or nothing: only the mix
  T gradient_scale = 1;
};

// torch::optim::SGD:  g += decay x;  b = first ? g : momentum b + (1 - dampening) g;
//                     update = lr (nesterov ? g + momentum b : b).   Without momentum: lr g.
template <typename T>
struct SgdStep {
  T lr = 0;
  T momentum = 0;
  T dampening = 0;
  T decay = 0;
  bool nesterov = false;
  bool first = false;  // the first step of this piece: b is not read
};

// Adam, and its accumulated form with a window of `window` steps (1: Adam itself).
//   g += decay x;  x *= shrink
//   m' = beta1 m + rest1 g;  v' = beta2 v + rest2 g²
//   update = lr (m' / correction1) / (sqrt(v' / correction2) + epsilon), with one division:
//          = (lr sqrt(correction2) / correction1) m' / (sqrt(v') + epsilon sqrt(correction2))
// Window 1: m = m', v = v'. Otherwise m' and v' are discarded, a += g (1 / window), and at the end
// of a window m = beta1 m + rest1 a; v = beta2 v + rest2 a²; a = 0.
template <typename T>
struct AdamStep {
  T lr = 0;
  T beta1 = 0;
  T rest1 = 1;  // 1 - beta1, rounded once: taken from the float 0.999 it would be off by 1.3e-5
  T beta2 = 0;
  T rest2 = 1;
  T epsilon = 0;
  T decay = 0;        // coupled: part of the gradient
  T shrink = 1;       // decoupled: 1 - lr decay, rounded once
  T correction1 = 1;  // 1 - beta1^k, k = ceil(t / window)
  T correction2 = 1;
  std::uint32_t window = 1;
  bool ends_window = true;
};

// Only the mix: an update that is skipped, a parameter without a gradient.
bool update_none(const Streams<float>& streams);
bool update_none(const Streams<double>& streams);

// `momentum` may be null if the step has none.
bool update_sgd(const Streams<float>& streams, const SgdStep<float>& step, float* momentum);
bool update_sgd(const Streams<double>& streams, const SgdStep<double>& step, double* momentum);

// `accumulated` is needed if the window is longer than 1.
bool update_adam(const Streams<float>& streams, const AdamStep<float>& step, float* first_moment,
                 float* second_moment, float* accumulated);
bool update_adam(const Streams<double>& streams, const AdamStep<double>& step, double* first_moment,
                 double* second_moment, double* accumulated);

// The sum of squares, in double: element i belongs to sum i mod 16, and halves of the sums are
// added (j and j + 8, then j and j + 4, …). The same bits on every instruction set; not finite if
// an element is not.
double sum_of_squares(const float* values, std::size_t size);
double sum_of_squares(const double* values, std::size_t size);

}  // namespace starling::kernels
