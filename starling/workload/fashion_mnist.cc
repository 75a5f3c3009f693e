#include "starling/workload/fashion_mnist.h"

#include <algorithm>
#include <utility>

#include "starling/base/error.h"
#include "starling/workload/idx.h"

namespace starling::workload {
namespace {

constexpr std::size_t kClasses = 10;

// Of the uncompressed files, in the order of their names.
constexpr std::array<std::string_view, 4> kDigests = {
    "f4a8712d7a061bf5bd6d2ca38dc4d50a", "9018921c3c673c538a1fc5bad174d6f9",
    "8181f5470baa50b63fa0f6fddb340f0a", "15d484375f8d13e6eb1aabb0c3f46965"};

}  // namespace

Images join_idx(const std::filesystem::path& images, std::string_view images_md5,
                const std::filesystem::path& labels, std::string_view labels_md5) {
  Idx pixels = read_idx(images, 3, images_md5);
  Idx classes = read_idx(labels, 1, labels_md5);
  require(pixels.sizes[0] == classes.sizes[0], "{} has {} images, but {} has {} labels",
          images.string(), pixels.sizes[0], labels.string(), classes.sizes[0]);
  const auto wrong = std::find_if(classes.values.begin(), classes.values.end(),
                                  [](std::uint8_t label) { return label >= kClasses; });
  require(wrong == classes.values.end(), "{} is damaged: label {} is {}; allowed are 0 to {}",
          labels.string(), wrong - classes.values.begin(),
          wrong == classes.values.end() ? 0 : *wrong, kClasses - 1);
  return {.name = "fashion-mnist",
          .pixels = std::move(pixels.values),
          .labels = std::move(classes.values),
          .count = pixels.sizes[0],
          .channels = 1,
          .height = pixels.sizes[1],
          .width = pixels.sizes[2],
          .classes = kClasses};
}

ImageSet read_fashion_mnist(const std::filesystem::path& folder) {
  const auto part = [&](std::size_t first) {
    return join_idx(folder / kFashionMnistFiles[first], kDigests[first],
                    folder / kFashionMnistFiles[first + 1], kDigests[first + 1]);
  };
  ImageSet set{.train = part(0), .test = part(2)};
  measure(set);
  return set;
}

}  // namespace starling::workload
