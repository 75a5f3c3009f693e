#include "starling/workload/image_data.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "starling/workload/cifar10.h"
#include "starling/workload/fashion_mnist.h"
#include "tests/workload/temporary.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::size_t> per_class(const Images& images) {
  std::vector<std::size_t> counts(images.classes);
  for (const std::uint8_t label : images.labels) {
    ++counts.at(label);
  }
  return counts;
}

TEST(FashionMnist, IsWhatWasPublished) {
  const TemporaryVariable unset("STARLING_DATA", nullptr);
  const ImageSet set = load_images("fashion-mnist");
  EXPECT_EQ(set.train.count, 60'000u);
  EXPECT_EQ(set.test.count, 10'000u);
  EXPECT_EQ(per_class(set.train), std::vector<std::size_t>(10, 6'000));
  EXPECT_EQ(per_class(set.test), std::vector<std::size_t>(10, 1'000));
  for (const Images* part : {&set.train, &set.test}) {
    EXPECT_EQ(part->name, "fashion-mnist");
    EXPECT_EQ(part->channels, 1u);
    EXPECT_EQ(part->height, 28u);
    EXPECT_EQ(part->width, 28u);
    EXPECT_EQ(part->classes, 10u);
    EXPECT_EQ(part->pixels.size(), part->count * 784);
    EXPECT_EQ(part->labels.size(), part->count);
    EXPECT_NEAR(part->mean[0], 0.286041, 5e-7);
    EXPECT_NEAR(part->deviation[0], 0.353024, 5e-7);
  }
}

// A folder with links to the real files, to be spoilt.
class SpoiltFashionMnist : public testing::Test {
 protected:
  SpoiltFashionMnist() {
    fs::create_directory(folder());
    for (const std::string_view file : kFashionMnistFiles) {
      fs::create_symlink(folder_of("fashion-mnist", "/usr/share/datasets") / file, folder() / file);
    }
  }
  fs::path folder() const { return temporary_.path() / "fashion-mnist"; }
  std::string load() const {
    return refusal([&] { load_images("fashion-mnist", temporary_.path()); });
  }

  TemporaryFolder temporary_;
};

TEST_F(SpoiltFashionMnist, WholeItIsRead) { EXPECT_EQ(load(), "no error"); }

TEST_F(SpoiltFashionMnist, AMissingFileIsNamedAndWhatToRun) {
  fs::remove(folder() / "t10k-labels-idx1-ubyte.gz");
  const std::string text = load();
  EXPECT_TRUE(has(text, folder().string())) << text;
  EXPECT_TRUE(has(text, "t10k-labels-idx1-ubyte.gz is missing")) << text;
  EXPECT_TRUE(has(text, "apt-get install dataset-fashion-mnist")) << text;
}

TEST_F(SpoiltFashionMnist, ACutFileIsNamed) {
  const fs::path file = folder() / "train-labels-idx1-ubyte.gz";
  const fs::path real = fs::read_symlink(file);
  fs::remove(file);
  fs::copy_file(real, file);
  fs::resize_file(file, fs::file_size(file) / 2);
  const std::string text = load();
  EXPECT_TRUE(has(text, file.string() + " is damaged: ")) << text;
  EXPECT_FALSE(has(text, "MD5")) << text;
}

TEST_F(SpoiltFashionMnist, AFlippedByteIsNoticed) {
  const fs::path file = folder() / "t10k-labels-idx1-ubyte.gz";
  const fs::path real = fs::read_symlink(file);
  fs::remove(file);
  fs::copy_file(real, file);
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(2'000);
  bytes.put('\x55');
  bytes.close();
  const std::string text = load();
  EXPECT_TRUE(has(text, file.string() + " is damaged: ")) << text;
}

TEST_F(SpoiltFashionMnist, OtherContentIsNoticed) {
  const fs::path file = folder() / "t10k-labels-idx1-ubyte.gz";
  fs::remove(file);
  fs::create_symlink(fs::read_symlink(folder() / "train-labels-idx1-ubyte.gz"), file);
  const std::string text = load();
  EXPECT_TRUE(has(text, file.string() + " is damaged: its content has MD5 9018921c")) << text;
}

TEST_F(SpoiltFashionMnist, AFolderInTheWayIsNotAFile) {
  fs::remove(folder() / "t10k-labels-idx1-ubyte.gz");
  fs::create_directory(folder() / "t10k-labels-idx1-ubyte.gz");
  EXPECT_TRUE(has(load(), "is missing"));
}

TEST(LoadImages, AnUnknownNameIsAnsweredByTheNearest) {
  EXPECT_EQ(refusal([] { load_images("cifar-10"); }),
            "unknown data set 'cifar-10'; did you mean 'cifar10'?");
  EXPECT_EQ(refusal([] { load_images("mnist"); }),
            "unknown data set 'mnist'; did you mean 'cifar10'?");
}

TEST(LoadImages, StarlingDataNamesTheDataFolder) {
  const TemporaryFolder empty;
  const TemporaryVariable data("STARLING_DATA", empty.path().c_str());
  const std::string text = refusal([] { load_images("fashion-mnist"); });
  EXPECT_TRUE(has(text, (empty.path() / "fashion-mnist").string())) << text;
  EXPECT_TRUE(has(text, "STARLING_DATA")) << text;
  // What the caller says counts more.
  EXPECT_EQ(folder_of("cifar10", "/else"), "/else/cifar10");
}

TEST(LoadImages, CacheFolders) {
  const TemporaryVariable data("STARLING_DATA", nullptr);
  const TemporaryVariable home("HOME", "/h");
  const TemporaryVariable cache("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(folder_of("cifar10"), "/h/.cache/starling/cifar10");
  EXPECT_EQ(folder_of("fashion-mnist"), "/usr/share/datasets/fashion-mnist");
  setenv("XDG_CACHE_HOME", "/c", 1);
  EXPECT_EQ(folder_of("cifar10"), "/c/starling/cifar10");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_TRUE(has(refusal([] { folder_of("cifar10"); }), "STARLING_DATA"));
}

TEST(Cifar10, NotFetchedYet) {
  const TemporaryFolder empty;
  const std::string text = refusal([&] { load_images("cifar10", empty.path()); });
  EXPECT_TRUE(has(text, "data_batch_1.bin is missing")) << text;
  EXPECT_TRUE(has(text, "run: starling data cifar10")) << text;
}

TEST(Cifar10, DamagedFilesAreNamed) {
  const TemporaryFolder temporary;
  for (const std::string_view file : kCifar10Files) {
    std::ofstream(temporary.path() / file) << "short";
  }
  const fs::path first = temporary.path() / "data_batch_1.bin";
  const auto read = [&] { return refusal([&] { read_cifar10(temporary.path()); }); };
  EXPECT_EQ(read(), first.string() + " is damaged: it is shorter than 30730000 bytes");
  fs::resize_file(first, 30'730'001);
  EXPECT_EQ(read(), first.string() + " is damaged: it is longer than 30730000 bytes");
  fs::resize_file(first, 30'730'000);
  EXPECT_TRUE(has(read(), first.string() + " is damaged: it has MD5 ")) << read();
}

TEST(Cifar10, RecordsBecomeImages) {
  std::vector<std::uint8_t> records(2 * kCifarRecord);
  records[0] = 7;
  records[1] = 11;
  records[kCifarRecord] = 9;
  records[kCifarRecord + 1 + 2 * kCifarPlane] = 13;
  Images images{.channels = 3, .height = 32, .width = 32, .classes = 10};
  append_records(images, records, "x.bin");
  EXPECT_EQ(images.count, 2u);
  EXPECT_EQ(images.labels, (std::vector<std::uint8_t>{7, 9}));
  EXPECT_EQ(images.pixels.size(), 2 * images.image_size());
  EXPECT_EQ(images.pixels[0], 11);
  EXPECT_EQ(images.pixels[3 * kCifarPlane + 2 * kCifarPlane], 13);
  records[0] = 10;
  EXPECT_EQ(refusal([&] { append_records(images, records, "x.bin"); }),
            "x.bin is damaged: the label of record 0 is 10");
}

TEST(Measure, ByChannelAndForBothParts) {
  ImageSet set;
  set.train = {.pixels = {0, 255, 51, 51, 255, 0, 51, 51},
               .count = 2,
               .channels = 2,
               .height = 1,
               .width = 2};
  measure(set);
  EXPECT_DOUBLE_EQ(set.train.mean[0], 0.5);
  EXPECT_DOUBLE_EQ(set.train.deviation[0], 0.5);
  EXPECT_DOUBLE_EQ(set.train.mean[1], 0.2);
  EXPECT_NEAR(set.train.deviation[1], 0, 1e-8);
  EXPECT_EQ(set.test.mean, set.train.mean);
}

}  // namespace
}  // namespace starling::workload
