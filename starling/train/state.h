// What a worker's training is between two steps, as plain data: with it a later process goes on
// where this one stood. No torch here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace starling::train {

// A tensor, its values in row-major order.
struct Stored {
  std::string name;
  std::string type;  // as safetensors has it: F64, F32, F16, BF16, I64, …, U8, BOOL
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

struct State {
  std::uint64_t step = 0;    // steps taken; the next has this number
  double samples = 0;        // that all workers have seen
  double push_weight = 1;    // of rows that send one
  double previous_norm = 0;  // of the last gradient, for Clip::Delayed
  // Parameters as the flat model has them; empty: no step was taken.
  std::vector<std::string> order;
  std::map<std::string, std::int64_t> taken;  // steps of each parameter
  // "parameter/NAME" (of narrower types the master copy), "buffer/NAME", "optimizer/KIND/NAME" or
  // "torch_optimizer", "random/cpu" (torch's generator; without it, it stays as it is).
  std::vector<Stored> tensors;

  const Stored* find(std::string_view name) const {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const Stored& tensor) { return tensor.name == name; });
    return found == tensors.end() ? nullptr : &*found;
  }
};

}  // namespace starling::train
