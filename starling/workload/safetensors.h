// The safetensors format: named tensors in one file, readable by anybody who has JSON.
//   8 bytes   N, little-endian
//   N bytes   {"__metadata__": {KEY: TEXT, …}, NAME: {"dtype", "shape", "data_offsets"}, …}, padded
//             with spaces to a multiple of 8
//   the rest  values, row-major, one tensor after the other, wide types first, so that all are
//             aligned
// Threads: any.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "starling/train/state.h"
#include "starling/workload/durable_file.h"

namespace starling::workload {

using Metadata = std::map<std::string, std::string>;

// What is to be written: the head and views of the tensors, which outlive it.
struct Packed {
  std::vector<std::byte> head;
  std::vector<const train::Stored*> order;
  Pieces pieces() const;
};
Packed pack(std::span<const train::Stored> tensors, const Metadata& metadata);

struct Unpacked {
  std::vector<train::Stored> tensors;
  Metadata metadata;
};
// Throws Error{Input} saying what is wrong with the bytes, without their name.
Unpacked unpack(std::span<const std::byte> bytes);

// A worker's training: scalars are metadata, doubles with all their digits.
Packed pack(const train::State& state);
train::State state_of(Unpacked unpacked);

}  // namespace starling::workload
