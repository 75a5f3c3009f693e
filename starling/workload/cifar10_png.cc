#include "starling/workload/cifar10_png.h"

#include <png.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "starling/base/error.h"
#include "starling/workload/cifar10.h"

namespace starling::workload {
namespace {

// A PNG being read by libpng's simple interface, which returns its errors.
class Png {
 public:
  explicit Png(const std::filesystem::path& path) : path_(path) {
    image_.version = PNG_IMAGE_VERSION;
    png_image_begin_read_from_file(&image_, path.c_str());
    expect_no_error();
  }
  ~Png() { png_image_free(&image_); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  std::size_t width() const { return image_.width; }
  std::size_t height() const { return image_.height; }
  bool is_rgb() const { return image_.format == PNG_FORMAT_RGB; }

  std::vector<std::uint8_t> pixels() {
    std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(image_));
    png_image_finish_read(&image_, nullptr, pixels.data(), 0, nullptr);
    expect_no_error();
    return pixels;
  }

 private:
  void expect_no_error() const {
    require(image_.warning_or_error == 0, "{} is damaged: {}", path_.string(), image_.message);
  }

  std::filesystem::path path_;
  png_image image_{};
};

}  // namespace

std::vector<std::uint8_t> records_of_png(const std::filesystem::path& path,
                                         std::span<const std::uint8_t> labels) {
  Png png(path);
  require(png.is_rgb() && png.width() == kCifarPlane && png.height() == labels.size(),
          "{} is not {} rows of {} pixels in 8-bit RGB", path.string(), labels.size(), kCifarPlane);
  const std::vector<std::uint8_t> pixels = png.pixels();
  std::vector<std::uint8_t> records(labels.size() * kCifarRecord);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    std::uint8_t* record = records.data() + i * kCifarRecord;
    const std::uint8_t* row = pixels.data() + i * 3 * kCifarPlane;
    *record++ = labels[i];
    for (std::size_t p = 0; p < kCifarPlane; ++p) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        record[channel * kCifarPlane + p] = row[3 * p + channel];
      }
    }
  }
  return records;
}

std::vector<std::uint8_t> read_labels(const std::filesystem::path& path, std::size_t count) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  require(json.is_array() && json.size() == count, "{} is not a list of {} labels", path.string(),
          count);
  std::vector<std::uint8_t> labels;
  for (const auto& label : json) {
    require(label.is_number_unsigned() && label.get<std::uint64_t>() < kCifarClasses,
            "{}: '{}' is not a label; allowed are 0 to {}", path.string(), label.dump(),
            kCifarClasses - 1);
    labels.push_back(label.get<std::uint8_t>());
  }
  return labels;
}

}  // namespace starling::workload
