#include "starling/workload/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "starling/base/error.h"
#include "starling/workload/digest.h"

namespace starling::workload {
namespace {

constexpr std::size_t kBytesType = 8;
// No set known is larger; a damaged file might seem to be.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

std::size_t big_endian(std::span<const std::uint8_t> four) {
  return (std::size_t{four[0]} << 24) | (std::size_t{four[1]} << 16) | (std::size_t{four[2]} << 8) |
         four[3];
}

// About how large the file is uncompressed: gzip's last four bytes say it (RFC 1952),
// little-endian. A damaged file might say anything.
std::size_t guessed_size(const std::filesystem::path& path) {
  std::error_code problem;
  const std::uintmax_t bytes = std::filesystem::file_size(path, problem);
  if (problem || bytes < 4 || bytes > kMostBytes) {
    return 0;
  }
  std::array<std::uint8_t, 4> last{};
  std::ifstream file(path, std::ios::binary);
  file.seekg(-4, std::ios::end);
  file.read(reinterpret_cast<char*>(last.data()), last.size());
  std::reverse(last.begin(), last.end());
  return std::min({std::max(bytes, big_endian(last)), 20 * bytes, kMostBytes});
}

std::vector<std::uint8_t> read_uncompressed(const std::filesystem::path& path) {
  errno = 0;
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(path.c_str(), "rb"), gzclose);
  require(file != nullptr, "cannot read {}: {}", path.string(),
          std::strerror(errno == 0 ? ENOMEM : errno));
  gzbuffer(file.get(), 1 << 17);
  // With room for one more byte, so that the end is seen without growing.
  std::vector<std::uint8_t> content(guessed_size(path) + 1);
  std::size_t size = 0;
  while (size <= kMostBytes) {
    if (size == content.size()) {
      content.resize(std::max<std::size_t>(2 * size, 1 << 20));
    }
    const int got =
        gzread(file.get(), content.data() + size, static_cast<unsigned>(content.size() - size));
    if (got <= 0) {
      break;
    }
    size += static_cast<std::size_t>(got);
  }
  int problem = Z_OK;
  const char* text = gzerror(file.get(), &problem);
  require(problem == Z_OK, "{} is damaged: {}", path.string(),
          problem == Z_ERRNO ? std::strerror(errno) : text);
  require(size <= kMostBytes, "{} is damaged: it is larger than {} bytes uncompressed",
          path.string(), kMostBytes);
  content.resize(size);
  return content;
}

}  // namespace

Idx read_idx(const std::filesystem::path& path, std::size_t dimensions,
             std::string_view expected_md5) {
  std::vector<std::uint8_t> content = read_uncompressed(path);
  if (!expected_md5.empty()) {
    const std::string found = md5(content);
    require(found == expected_md5, "{} is damaged: its content has MD5 {}, not {}", path.string(),
            found, expected_md5);
  }
  const std::size_t header = 4 * (1 + dimensions);
  require(content.size() >= header, "{} is damaged: it has {} bytes, its header alone {}",
          path.string(), content.size(), header);
  const std::span<const std::uint8_t> bytes(content);
  require(big_endian(bytes.first(4)) == ((kBytesType << 8) | dimensions),
          "{} is not an IDX file of bytes with {} dimension{}: it begins with {:#010x}",
          path.string(), dimensions, dimensions == 1 ? "" : "s", big_endian(bytes.first(4)));
  Idx idx;
  std::size_t values = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    idx.sizes.push_back(big_endian(bytes.subspan(4 * (1 + d), 4)));
    require(idx.sizes.back() == 0 || values <= kMostBytes / idx.sizes.back(),
            "{} is damaged: its header speaks of more values than it can hold", path.string());
    values *= idx.sizes.back();
  }
  require(content.size() - header == values, "{} is damaged: {} values follow a header of {}",
          path.string(), content.size() - header, values);
  content.erase(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(header));
  idx.values = std::move(content);
  return idx;
}

}  // namespace starling::workload
