// Where parameters lie in the flat model, and how it is cut into buckets. Immutable once made.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "starling/train/optimizer.h"

namespace starling::train {

// A trainable parameter, as its module registered it.
struct ParameterFacts {
  std::string name;
  std::size_t elements = 0;
  std::size_t dimensions = 0;
};

class FlatLayout {
 public:
  struct Place {
    std::size_t parameter = 0;  // index into the facts
    std::size_t begin = 0;      // in elements of the flat model
    std::size_t end = 0;
    std::size_t bucket = 0;
  };
  // Parameters in `order`, each once. A bucket is closed as soon as it holds `bucket_elements`;
  // more than kMostBuckets would be needed: buckets are larger.
  FlatLayout(std::span<const ParameterFacts> facts, std::span<const std::size_t> order,
             std::size_t bucket_elements);
  static constexpr std::size_t kMostBuckets = 200;

  std::span<const Place> places() const { return places_; }
  std::size_t elements() const { return places_.empty() ? 0 : places_.back().end; }
  std::size_t buckets() const { return ends_.size(); }
  // Where bucket b ends, in elements, and which places it holds.
  std::span<const std::size_t> ends() const { return ends_; }
  std::span<const Place> places_of(std::size_t bucket) const;

 private:
  std::vector<Place> places_;
  std::vector<std::size_t> ends_;
  std::vector<std::size_t> first_;  // place of each bucket, and one past the last
};

// The whole of the facts as an order of parameters: as registered, last first, which is about the
// order in which gradients become ready.
std::vector<std::size_t> last_first(std::size_t parameters);
// Names as indices. Throws Error{Input} naming what is missing, unknown or twice.
std::vector<std::size_t> order_of(std::span<const ParameterFacts> facts,
                                  std::span<const std::string> names);

}  // namespace starling::train
