#include "starling/workload/safetensors.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "starling/base/error.h"

namespace starling::workload {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using train::Stored;

constexpr std::size_t kMostHead = 100'000'000;  // as other readers have it
static_assert(std::endian::native == std::endian::little, "values are written as they lie");

// On one line, whatever it is.
std::string quoted(const std::string& name) { return json(name).dump(); }

std::size_t size_of_type(std::string_view type) {
  if (type == "F64" || type == "I64" || type == "U64") {
    return 8;
  }
  if (type == "F32" || type == "I32" || type == "U32") {
    return 4;
  }
  if (type == "F16" || type == "BF16" || type == "I16" || type == "U16") {
    return 2;
  }
  require(type == "I8" || type == "U8" || type == "BOOL", "unknown type '{}' of values", type);
  return 1;
}

std::size_t bytes_of(const Stored& tensor) {
  std::size_t bytes = size_of_type(tensor.type);
  for (const std::int64_t length : tensor.shape) {
    require(length >= 0 && (length == 0 || bytes <= SIZE_MAX / static_cast<std::size_t>(length)),
            "{} has an impossible shape", quoted(tensor.name));
    bytes *= static_cast<std::size_t>(length);
  }
  return bytes;
}

Stored stored_of(const std::string& name, const json& facts, std::span<const std::byte> values) {
  Stored tensor;
  tensor.name = name;
  tensor.type = facts.at("dtype").get<std::string>();
  tensor.shape = facts.at("shape").get<std::vector<std::int64_t>>();
  const auto offsets = facts.at("data_offsets").get<std::vector<std::uint64_t>>();
  require(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= values.size(),
          "the values of {} are not in the file: it is torn", quoted(name));
  require(offsets[1] - offsets[0] == bytes_of(tensor), "{} has {} bytes, not {}", quoted(name),
          offsets[1] - offsets[0], bytes_of(tensor));
  const auto part = values.subspan(offsets[0], offsets[1] - offsets[0]);
  tensor.bytes.assign(part.begin(), part.end());
  return tensor;
}

template <typename T>
T number_of(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  require(found != metadata.end(), "it has no '{}'", key);
  const std::string& text = found->second;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), "'{}' is no number: '{}'", key,
          text);
  return value;
}

}  // namespace

Pieces Packed::pieces() const {
  Pieces pieces = {head};
  for (const Stored* tensor : order) {
    pieces.emplace_back(tensor->bytes);
  }
  return pieces;
}

Packed pack(std::span<const Stored> tensors, const Metadata& metadata) {
  Packed packed;
  for (const Stored& tensor : tensors) {
    check(tensor.bytes.size() == bytes_of(tensor), "{} has {} bytes", tensor.name,
          tensor.bytes.size());
    packed.order.push_back(&tensor);
  }
  // Wide types first, others as they come: they lie one behind the other.
  std::sort(packed.order.begin(), packed.order.end(), [](const Stored* a, const Stored* b) {
    const std::size_t wide = size_of_type(a->type);
    const std::size_t other = size_of_type(b->type);
    return wide != other ? wide > other : a < b;
  });
  ordered_json head;
  head["__metadata__"] = metadata;
  std::size_t at = 0;
  for (const Stored* tensor : packed.order) {
    const std::size_t end = at + tensor->bytes.size();
    head[tensor->name] = {
        {"dtype", tensor->type}, {"shape", tensor->shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = head.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  packed.head.resize(sizeof(size) + text.size());
  std::memcpy(packed.head.data(), &size, sizeof(size));
  std::memcpy(packed.head.data() + sizeof(size), text.data(), text.size());
  return packed;
}

Unpacked unpack(std::span<const std::byte> bytes) {
  std::uint64_t size = 0;
  require(bytes.size() >= sizeof(size), "it is torn: it has {} bytes", bytes.size());
  std::memcpy(&size, bytes.data(), sizeof(size));
  require(size <= kMostHead, "it is no safetensors file");
  require(size <= bytes.size() - sizeof(size), "it is torn: its head is not whole");
  const std::span<const std::byte> values = bytes.subspan(sizeof(size) + size);
  try {
    const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof(size);
    const ordered_json head = ordered_json::parse(text, text + size);
    Unpacked unpacked;
    for (const auto& [name, facts] : head.items()) {
      if (name == "__metadata__") {
        unpacked.metadata = facts.get<Metadata>();
      } else {
        unpacked.tensors.push_back(stored_of(name, facts, values));
      }
    }
    return unpacked;
  } catch (const json::exception&) {
    require(false, "its head is not that of a safetensors file");
  }
  return {};
}

Packed pack(const train::State& state) {
  return pack(state.tensors, {{"format", "starling worker 1"},
                              {"step", fmt::format("{}", state.step)},
                              {"samples", fmt::format("{}", state.samples)},
                              {"push_weight", fmt::format("{}", state.push_weight)},
                              {"previous_norm", fmt::format("{}", state.previous_norm)},
                              {"order", json(state.order).dump()},
                              {"taken", json(state.taken).dump()}});
}

train::State state_of(Unpacked unpacked) {
  const Metadata& facts = unpacked.metadata;
  train::State state;
  state.step = number_of<std::uint64_t>(facts, "step");
  state.samples = number_of<double>(facts, "samples");
  state.push_weight = number_of<double>(facts, "push_weight");
  state.previous_norm = number_of<double>(facts, "previous_norm");
  try {
    state.order = json::parse(facts.at("order")).get<std::vector<std::string>>();
    state.taken = json::parse(facts.at("taken")).get<std::map<std::string, std::int64_t>>();
  } catch (const std::exception&) {
    require(false, "it does not say in which order parameters lie");
  }
  state.tensors = std::move(unpacked.tensors);
  return state;
}

}  // namespace starling::workload
