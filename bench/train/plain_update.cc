#include "bench/train/plain_update.h"

#include <cmath>

namespace starling::train {

void plain_adamw(float* __restrict model, float* __restrict copy, const float* __restrict result,
                 float of_from, float of_result, const float* __restrict gradient,
                 float* __restrict first_moment, float* __restrict second_moment, std::size_t size,
                 const kernels::AdamStep<float>& step) {
  const kernels::AdamStep<float> s = step;
  const float lr = s.lr / s.correction1;
  const float scale = 1 / s.correction2;
  for (std::size_t i = 0; i < size; ++i) {
    const float x = of_from * model[i] + of_result * result[i];
    const float g = gradient[i];
    const float m = s.beta1 * first_moment[i] + s.rest1 * g;
    const float v = s.beta2 * second_moment[i] + s.rest2 * (g * g);
    first_moment[i] = m;
    second_moment[i] = v;
    const float moved = s.shrink * x - lr * m / (std::sqrt(v * scale) + s.epsilon);
    model[i] = moved;
    copy[i] = moved;
  }
}

}  // namespace starling::train
