// How a buffer is cut: into one segment per member, and each segment into chunks, the unit of
// transfer. Cuts fall on multiples of 64 bytes, so elements stay whole. Chunk q of segment j may be
// empty; all workers know which.
#pragma once

#include <algorithm>
#include <cstddef>

namespace starling::comm {

class Segments {
 public:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const { return end - begin; }
    bool empty() const { return begin == end; }
  };

  // `chunk` is in bytes; 0 means whole segments.
  Segments(std::size_t bytes, std::size_t count, std::size_t chunk)
      : bytes_(bytes), count_(count), units_((bytes + kGrain - 1) / kGrain) {
    const std::size_t longest = (units_ + count_ - 1) / count_ * kGrain;
    chunk_ = chunk == 0 ? std::max(longest, kGrain) : (chunk + kGrain - 1) / kGrain * kGrain;
    chunks_ = std::max<std::size_t>(1, (longest + chunk_ - 1) / chunk_);
  }

  std::size_t chunks() const { return chunks_; }
  std::size_t chunk_bytes() const { return chunk_; }

  Range segment(std::size_t j) const { return {cut(j), cut(j + 1)}; }
  Range chunk(std::size_t j, std::size_t q) const {
    const Range whole = segment(j);
    return {std::min(whole.begin + q * chunk_, whole.end),
            std::min(whole.begin + (q + 1) * chunk_, whole.end)};
  }

 private:
  static constexpr std::size_t kGrain = 64;
  std::size_t cut(std::size_t j) const { return std::min(units_ * j / count_ * kGrain, bytes_); }

  std::size_t bytes_;
  std::size_t count_;
  std::size_t units_;
  std::size_t chunk_;
  std::size_t chunks_;
};

}  // namespace starling::comm
