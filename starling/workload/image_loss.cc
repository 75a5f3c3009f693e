#include "starling/workload/image_loss.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/sum.h>
#include <torch/nn/module.h>

#include <algorithm>

namespace starling::workload {

at::Tensor image_loss(ImageModel& model, const ImageBatch& batch) {
  return at::cross_entropy_loss(model.forward(batch.data), batch.target);
}

Score evaluate(ImageModel& model, const Images& images, std::size_t first, std::size_t count,
               std::size_t batch) {
  const c10::InferenceMode inference;
  model.module().eval();
  Score score;
  for (std::size_t at = first; at < first + count; at += batch) {
    const std::size_t samples = std::min(batch, first + count - at);
    const ImageBatch part = image_range(images, at, samples);
    const at::Tensor output = model.forward(part.data);
    score.samples += static_cast<double>(samples);
    score.correct += at::eq(at::argmax(output, 1), part.target).sum().item<double>();
    score.loss +=
        at::cross_entropy_loss(output, part.target, {}, at::Reduction::Sum).item<double>();
  }
  model.module().train();
  return score;
}

std::size_t count_parameters(ImageModel& model) {
  std::size_t count = 0;
  for (const at::Tensor& parameter : model.module().parameters()) {
    count += static_cast<std::size_t>(parameter.numel());
  }
  return count;
}

}  // namespace starling::workload
