#include "starling/workload/cifar10.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/workload/digest.h"

namespace starling::workload {
namespace {

std::vector<std::uint8_t> read_batch(const std::filesystem::path& path, std::string_view digest) {
  constexpr std::size_t kSize = kCifarRecords * kCifarRecord;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "cannot read {}: {}", path.string(), std::strerror(errno));
  std::vector<std::uint8_t> content(kSize + 1);
  file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(content.size()));
  require(static_cast<std::size_t>(file.gcount()) == kSize, "{} is damaged: it is {} than {} bytes",
          path.string(), static_cast<std::size_t>(file.gcount()) < kSize ? "shorter" : "longer",
          kSize);
  content.resize(kSize);
  const std::string found = md5(content);
  require(found == digest, "{} is damaged: it has MD5 {}, not {}", path.string(), found, digest);
  return content;
}

Images empty_part(std::size_t files) {
  Images images{.name = "cifar10",
                .channels = 3,
                .height = kCifarSide,
                .width = kCifarSide,
                .classes = kCifarClasses};
  images.pixels.reserve(files * kCifarRecords * images.image_size());
  images.labels.reserve(files * kCifarRecords);
  return images;
}

}  // namespace

void append_records(Images& images, std::span<const std::uint8_t> records,
                    const std::filesystem::path& file) {
  check(records.size() % kCifarRecord == 0, "{} bytes are not whole records", records.size());
  for (std::size_t at = 0; at < records.size(); at += kCifarRecord) {
    const auto record = records.subspan(at, kCifarRecord);
    require(record[0] < kCifarClasses, "{} is damaged: the label of record {} is {}", file.string(),
            at / kCifarRecord, record[0]);
    images.labels.push_back(record[0]);
    images.pixels.insert(images.pixels.end(), record.begin() + 1, record.end());
    ++images.count;
  }
}

ImageSet read_cifar10(const std::filesystem::path& folder) {
  ImageSet set{.train = empty_part(kCifar10Files.size() - 1), .test = empty_part(1)};
  for (std::size_t i = 0; i < kCifar10Files.size(); ++i) {
    const auto file = folder / kCifar10Files[i];
    append_records(i + 1 < kCifar10Files.size() ? set.train : set.test,
                   read_batch(file, kCifar10Digests[i]), file);
  }
  measure(set);
  return set;
}

}  // namespace starling::workload
