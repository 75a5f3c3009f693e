#include "starling/workload/image_tensors.h"

#include <ATen/ops/empty.h>

#include <numeric>
#include <vector>

#include "starling/base/error.h"

namespace starling::workload {
namespace {

// (pixel / 255 − mean) / deviation = pixel · scale + offset
struct Normal {
  float scale;
  float offset;
};

Normal normal_of(const Images& images, std::size_t channel) {
  // A channel of one value only would divide by 0.
  const double deviation = images.deviation[channel] > 0 ? images.deviation[channel] : 1;
  return {static_cast<float>(1 / (255 * deviation)),
          static_cast<float>(-images.mean[channel] / deviation)};
}

}  // namespace

ImageBatch image_batch(const Images& images, std::span<const std::uint32_t> indices) {
  const auto size = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  ImageBatch batch{.data = at::empty({size(indices.size()), size(images.channels),
                                      size(images.height), size(images.width)},
                                     at::kFloat),
                   .target = at::empty({size(indices.size())}, at::kLong)};
  const std::size_t plane = images.height * images.width;
  auto* data = batch.data.data_ptr<float>();
  auto* target = batch.target.data_ptr<std::int64_t>();
  for (const std::uint32_t index : indices) {
    check(index < images.count, "there is no image {} of {}", index, images.count);
    *target++ = images.labels[index];
    const std::uint8_t* pixels = images.pixels.data() + index * images.image_size();
    for (std::size_t channel = 0; channel < images.channels; ++channel) {
      const Normal normal = normal_of(images, channel);
      for (std::size_t i = 0; i < plane; ++i) {
        data[i] = static_cast<float>(pixels[i]) * normal.scale + normal.offset;
      }
      data += plane;
      pixels += plane;
    }
  }
  return batch;
}

ImageBatch image_range(const Images& images, std::size_t first, std::size_t count) {
  std::vector<std::uint32_t> indices(count);
  std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(first));
  return image_batch(images, indices);
}

}  // namespace starling::workload
