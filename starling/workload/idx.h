// The IDX format of MNIST and its heirs, compressed by gzip or not. Big-endian:
//
//   0  0  type (8: bytes)  number of dimensions | their sizes, 32 bits each | values, last
//                                                                             dimension fastest
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace starling::workload {

struct Idx {
  std::vector<std::size_t> sizes;  // of its dimensions
  std::vector<std::uint8_t> values;
};

// `md5`: of the uncompressed file; empty: any. Throws Error{Input} that names the file: it cannot
// be read, is damaged, has another number of dimensions than `dimensions`, or does not hold bytes.
Idx read_idx(const std::filesystem::path& file, std::size_t dimensions, std::string_view md5);

}  // namespace starling::workload
