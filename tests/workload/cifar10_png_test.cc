#include "starling/workload/cifar10_png.h"

#include <gtest/gtest.h>
#include <png.h>

#include "starling/base/random.h"
#include "starling/workload/cifar10.h"
#include "tests/workload/temporary.h"

namespace starling::workload {
namespace {

using Bytes = std::vector<std::uint8_t>;

// As the package has it: pixel p of image i at (p, i).
void write_png(const std::filesystem::path& path, std::uint32_t width, std::uint32_t height,
               std::uint32_t format, const Bytes& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  ASSERT_EQ(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr), 1)
      << image.message;
}

class Cifar10Png : public testing::Test {
 protected:
  static Bytes noise(std::size_t size) {
    RandomSequence random(Random(5));
    Bytes bytes(size);
    for (auto& byte : bytes) {
      byte = static_cast<std::uint8_t>(random.bits());
    }
    return bytes;
  }
  std::filesystem::path path() const { return temporary_.path() / "batch.png"; }

  TemporaryFolder temporary_;
};

TEST_F(Cifar10Png, RowsBecomeRecords) {
  const Bytes labels = {3, 0, 9, 1};
  const Bytes pixels = noise(labels.size() * 3 * kCifarPlane);
  write_png(path(), kCifarPlane, 4, PNG_FORMAT_RGB, pixels);
  const Bytes records = records_of_png(path(), labels);
  ASSERT_EQ(records.size(), labels.size() * kCifarRecord);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    EXPECT_EQ(records[i * kCifarRecord], labels[i]);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      for (std::size_t p = 0; p < kCifarPlane; ++p) {
        ASSERT_EQ(records[i * kCifarRecord + 1 + channel * kCifarPlane + p],
                  pixels[(i * kCifarPlane + p) * 3 + channel])
            << "image " << i << ", channel " << channel << ", pixel " << p;
      }
    }
  }
}

TEST_F(Cifar10Png, OtherFormsAreRefused) {
  const Bytes labels = {3, 0};
  const std::string expected = path().string() + " is not 2 rows of 1024 pixels in 8-bit RGB";
  const auto refused = [&] { return refusal([&] { records_of_png(path(), labels); }); };
  write_png(path(), kCifarPlane, 3, PNG_FORMAT_RGB, noise(3 * 3 * kCifarPlane));
  EXPECT_EQ(refused(), expected);
  write_png(path(), kCifarPlane - 1, 2, PNG_FORMAT_RGB, noise(2 * 3 * kCifarPlane));
  EXPECT_EQ(refused(), expected);
  write_png(path(), kCifarPlane, 2, PNG_FORMAT_GRAY, noise(2 * kCifarPlane));
  EXPECT_EQ(refused(), expected);
  write_png(path(), kCifarPlane, 2, PNG_FORMAT_RGBA, noise(2 * 4 * kCifarPlane));
  EXPECT_EQ(refused(), expected);
}

TEST_F(Cifar10Png, DamagedOnesAreNamed) {
  const Bytes labels = {3, 0};
  write_png(path(), kCifarPlane, 2, PNG_FORMAT_RGB, noise(2 * 3 * kCifarPlane));
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) / 2);
  const auto refused = [&] { return refusal([&] { records_of_png(path(), labels); }); };
  EXPECT_TRUE(refused().starts_with(path().string() + " is damaged: ")) << refused();
  std::filesystem::remove(path());
  EXPECT_TRUE(refused().starts_with(path().string() + " is damaged: ")) << refused();
}

TEST_F(Cifar10Png, Labels) {
  const auto json = temporary_.path() / "labels.json";
  const auto read = [&](const std::string& text, std::size_t count) {
    std::ofstream(json) << text;
    return read_labels(json, count);
  };
  EXPECT_EQ(read("[6, 9,0]", 3), (Bytes{6, 9, 0}));
  const std::string no_list = json.string() + " is not a list of 3 labels";
  EXPECT_EQ(refusal([&] { read("[6, 9]", 3); }), no_list);
  EXPECT_EQ(refusal([&] { read("[6, 9, ", 3); }), no_list);
  EXPECT_EQ(refusal([&] { read("{}", 3); }), no_list);
  EXPECT_EQ(refusal([&] { read("[10]", 1); }),
            json.string() + ": '10' is not a label; allowed are 0 to 9");
  EXPECT_EQ(refusal([&] { read("[-1]", 1); }),
            json.string() + ": '-1' is not a label; allowed are 0 to 9");
  std::filesystem::remove(json);
  EXPECT_EQ(refusal([&] { read_labels(json, 3); }), no_list);
}

}  // namespace
}  // namespace starling::workload
