// Models for images: known names, made to the size of the data.
//
//   mlp       input - 512 - 256 - classes, ReLU
//   cnn       conv 5x5 to 32 - pool - conv 5x5 to 64 - pool - 128 - classes, ReLU
//   resnet20  He et al. 2015 in the form for CIFAR: three stages of three blocks, 16, 32 and 64
//             channels, batch norm, shortcuts without parameters
//   flat:N    N parameters that compute nothing: for emulated computation
//
// No torch in this header: a source that only passes models on need not wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}

namespace starling::workload {

class ImageModel {
 public:
  virtual ~ImageModel() = default;
  // What is trained; lives as long as this.
  virtual torch::nn::Module& module() = 0;
  // Images (count, channels, height, width), normalised, to scores (count, classes).
  virtual at::Tensor forward(const at::Tensor& images) = 0;
};

struct ImageShape {
  std::size_t channels = 1;
  std::size_t height = 28;
  std::size_t width = 28;
  std::size_t classes = 10;
};

std::span<const std::string_view> image_model_names();
// Whether it is flat:N. Throws Error{Input} if it is, and N is not a number of parameters.
bool is_flat_model(std::string_view name);

// The same seed, the same bits, whatever was drawn from torch's generators before. Throws
// Error{Input} for an unknown name, with the nearest known one, and for images that are too small.
std::unique_ptr<ImageModel> make_image_model(std::string_view name, const ImageShape& shape,
                                             std::uint64_t seed);

}  // namespace starling::workload
