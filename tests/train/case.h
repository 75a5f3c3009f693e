// A case of training that several processes and a single-process reference (reference.h) compute
// alike: which model, which data, which options, and what is unusual about it. Everything follows
// from the case by pure functions, without torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/train/optimizer.h"

namespace starling::test {

struct Case {
  std::string optimizer = "sgd";  // sgd, momentum, nesterov, adam, adamw, accum-adam, accum-adamw
  std::string algorithm = "dadam";
  std::string schedule = "";
  std::size_t bucket = std::size_t{25} << 20;  // bytes
  bool wide = false;                           // double
  std::uint64_t steps = 100;
  std::string clip = "none";  // none, global, delayed
  bool bf16 = false;
  std::uint32_t peers = 1;
  std::string averaging = "";  // Options::averaging
  std::uint32_t period = 0;    // Options::sync_period, if there is one
  // none; twice, unused, never-used, frozen, mixed-types, micro-batches, two-forwards, samples,
  // scaled, skips, evaluates
  std::string quirk = "none";
  std::string ledger = "";  // a path without the rank
};

// As words NAME=VALUE, and back. Throws Error{Input}.
std::string to_text(const Case& c);
Case parse_case(std::string_view text);

train::Fused optimizer_of(const Case& c);

// The model: parameters of odd sizes, so that there are several buckets with ends of their own.
enum class Kind : std::uint8_t { Double, Float, Bf16 };
struct Shape {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::size_t elements() const;
};
std::span<const Shape> shapes();
Kind kind_of(const Case& c, std::size_t parameter);
bool is_frozen(const Case& c, std::size_t parameter);

// Worker `worker`'s values before training; all begin with those of worker 0.
double initial(std::size_t worker, std::size_t parameter, std::size_t element);
// The loss is half the squared distance from targets. `term`: of the several in one step.
double target(std::size_t worker, std::uint64_t step, std::size_t term, std::size_t parameter,
              std::size_t element);
// How many terms a parameter has in one step; none: it is not used.
std::size_t terms_of(const Case& c, std::size_t worker, std::uint64_t step, std::size_t parameter);
// Whether the gradient of that step overflows.
bool overflows(const Case& c, std::size_t worker, std::uint64_t step);
// Of the batch; Options::batch is kBatch.
inline constexpr double kBatch = 2;
double samples(const Case& c, std::size_t worker, std::uint64_t step);
inline constexpr double kClipNorm = 12;

// A fingerprint of values one after the other.
class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace starling::test
