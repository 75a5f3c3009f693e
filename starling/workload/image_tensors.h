// Images as a model takes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "starling/workload/image_data.h"

namespace starling::workload {

struct ImageBatch {
  at::Tensor data;    // float (count, channels, height, width): (pixel / 255 − mean) / deviation
  at::Tensor target;  // int64 (count)
};

// Requires: every index < images.count.
ImageBatch image_batch(const Images& images, std::span<const std::uint32_t> indices);

// The images first … first + count − 1, for evaluation.
ImageBatch image_range(const Images& images, std::size_t first, std::size_t count);

}  // namespace starling::workload
