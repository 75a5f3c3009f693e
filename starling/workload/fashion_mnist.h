// Fashion-MNIST (Xiao et al. 2017): 60,000 and 10,000 grey images of 28 x 28 pixels, 10 classes, as
// the Debian package dataset-fashion-mnist has it. Debian compressed it anew, so that only digests
// of the uncompressed files agree with those published.
#pragma once

#include <array>
#include <filesystem>
#include <string_view>

#include "starling/workload/image_data.h"

namespace starling::workload {

inline constexpr std::array<std::string_view, 4> kFashionMnistFiles = {
    "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz"};

// Throws Error{Input} naming the file that cannot be read or is damaged.
ImageSet read_fashion_mnist(const std::filesystem::path& folder);

// One part, images and labels that belong together, of any content.
Images join_idx(const std::filesystem::path& images, std::string_view images_md5,
                const std::filesystem::path& labels, std::string_view labels_md5);

}  // namespace starling::workload
