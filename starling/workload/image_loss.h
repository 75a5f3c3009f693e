// What a model makes of images: the loss to train on, and its score on a stretch of a set.
#pragma once

#include <cstddef>

#include "starling/workload/image_data.h"
#include "starling/workload/image_models.h"
#include "starling/workload/image_tensors.h"

namespace starling::workload {

// Cross entropy, the mean over the batch.
at::Tensor image_loss(ImageModel& model, const ImageBatch& batch);

struct Score {
  double samples = 0;
  double correct = 0;
  double loss = 0;  // summed over samples
};

// Of the images first … first + count − 1, `batch` at a time, in evaluation mode; the model is left
// in training mode.
Score evaluate(ImageModel& model, const Images& images, std::size_t first, std::size_t count,
               std::size_t batch);

// Elements of all parameters.
std::size_t count_parameters(ImageModel& model);

}  // namespace starling::workload
