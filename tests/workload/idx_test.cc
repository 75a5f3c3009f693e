#include "starling/workload/idx.h"

#include <gtest/gtest.h>

#include "starling/workload/fashion_mnist.h"
#include "tests/workload/temporary.h"

namespace starling::workload {
namespace {

using Bytes = std::vector<std::uint8_t>;

class IdxFile : public testing::Test {
 protected:
  std::string path() const { return (temporary_.path() / "some.idx").string(); }
  Idx read(const Bytes& bytes, std::size_t dimensions, std::string_view md5 = "") const {
    write_bytes(path(), bytes);
    return read_idx(path(), dimensions, md5);
  }
  std::string refused(const Bytes& bytes, std::size_t dimensions, std::string_view md5 = "") const {
    return refusal([&] { read(bytes, dimensions, md5); });
  }

  TemporaryFolder temporary_;
};

TEST_F(IdxFile, SizesAreBigEndian) {
  Bytes bytes = {0, 0, 8, 2, 0, 0, 1, 2, 0, 0, 0, 1};
  bytes.resize(bytes.size() + 258, 5);
  const Idx idx = read(bytes, 2);
  EXPECT_EQ(idx.sizes, (std::vector<std::size_t>{258, 1}));
  EXPECT_EQ(idx.values, Bytes(258, 5));
}

TEST_F(IdxFile, TheDigestIsOfTheWholeContent) {
  const Bytes bytes = {0, 0, 8, 1, 0, 0, 0, 1, 42};
  EXPECT_EQ(refused(bytes, 1, "00"),
            path() + " is damaged: its content has MD5 f03b7cd87adcc377410665d21006ed2f, not 00");
}

TEST_F(IdxFile, WhatIsNotIdxIsRefused) {
  EXPECT_EQ(refused({}, 1), path() + " is damaged: it has 0 bytes, its header alone 8");
  EXPECT_EQ(refused({0, 0, 8, 1, 0, 0, 0}, 1),
            path() + " is damaged: it has 7 bytes, its header alone 8");
  EXPECT_EQ(refused({0, 0, 8, 1, 0, 0, 0, 2, 1}, 1),
            path() + " is damaged: 1 values follow a header of 2");
  EXPECT_EQ(refused({0, 0, 8, 1, 0, 0, 0, 1, 1, 1}, 1),
            path() + " is damaged: 2 values follow a header of 1");
  EXPECT_EQ(refused({0, 0, 13, 1, 0, 0, 0, 0}, 1),
            path() + " is not an IDX file of bytes with 1 dimension: it begins with 0x00000d01");
  EXPECT_EQ(refused({0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, 3),
            path() + " is damaged: its header speaks of more values than it can hold");
  EXPECT_EQ(refusal([&] { read_idx(path() + "2", 1, ""); }),
            "cannot read " + path() + "2: No such file or directory");
  EXPECT_NE(refusal([&] { read_idx(temporary_.path(), 1, ""); }), "no error");
}

TEST_F(IdxFile, ImagesAndLabelsMustFit) {
  const auto images = temporary_.path() / "images";
  const auto labels = temporary_.path() / "labels";
  write_bytes(images, Bytes{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7, 8});
  write_bytes(labels, Bytes{0, 0, 8, 1, 0, 0, 0, 2, 9, 0});
  const Images part = join_idx(images, "", labels, "");
  EXPECT_EQ(part.count, 2u);
  EXPECT_EQ(part.pixels, (Bytes{7, 8}));
  EXPECT_EQ(part.labels, (Bytes{9, 0}));
  write_bytes(labels, Bytes{0, 0, 8, 1, 0, 0, 0, 1, 9});
  EXPECT_EQ(refusal([&] { join_idx(images, "", labels, ""); }),
            images.string() + " has 2 images, but " + labels.string() + " has 1 labels");
  write_bytes(labels, Bytes{0, 0, 8, 1, 0, 0, 0, 2, 9, 10});
  EXPECT_EQ(refusal([&] { join_idx(images, "", labels, ""); }),
            labels.string() + " is damaged: label 1 is 10; allowed are 0 to 9");
}

}  // namespace
}  // namespace starling::workload
