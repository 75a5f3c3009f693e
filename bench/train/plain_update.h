// The rival of kernels::update_adam: the loop that one would write, over the same streams, given to
// the compiler with the freedom to use all of this machine.
#pragma once

#include <cstddef>

#include "starling/kernels/update.h"

namespace starling::train {

// AdamW with a mix (of_from model + of_result result, in place) and a copy.
void plain_adamw(float* __restrict model, float* __restrict copy, const float* __restrict result,
                 float of_from, float of_result, const float* __restrict gradient,
                 float* __restrict first_moment, float* __restrict second_moment, std::size_t size,
                 const kernels::AdamStep<float>& step);

}  // namespace starling::train
