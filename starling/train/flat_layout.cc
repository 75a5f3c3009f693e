#include "starling/train/flat_layout.h"

#include <algorithm>
#include <map>

#include "starling/base/error.h"

namespace starling::train {

FlatLayout::FlatLayout(std::span<const ParameterFacts> facts, std::span<const std::size_t> order,
                       std::size_t bucket_elements) {
  check(facts.size() == order.size(), "{} parameters in an order of {}", facts.size(),
        order.size());
  std::size_t all = 0;
  for (const ParameterFacts& parameter : facts) {
    all += parameter.elements;
  }
  const std::size_t least = std::max(bucket_elements, all / kMostBuckets + 1);
  std::size_t at = 0;
  for (const std::size_t parameter : order) {
    if (first_.size() == ends_.size()) {
      first_.push_back(places_.size());
    }
    const std::size_t end = at + facts[parameter].elements;
    places_.push_back({parameter, at, end, ends_.size()});
    at = end;
    if (at - (ends_.empty() ? 0 : ends_.back()) >= least) {
      ends_.push_back(at);
    }
  }
  if (ends_.empty() || ends_.back() < at) {
    ends_.push_back(at);
  }
  // What holds nothing (parameters without elements) belongs to the last bucket.
  for (Place& place : places_) {
    place.bucket = std::min(place.bucket, ends_.size() - 1);
  }
  first_.resize(ends_.size());
  first_.push_back(places_.size());
}

std::span<const FlatLayout::Place> FlatLayout::places_of(std::size_t bucket) const {
  return std::span(places_).subspan(first_.at(bucket), first_.at(bucket + 1) - first_.at(bucket));
}

std::vector<std::size_t> last_first(std::size_t parameters) {
  std::vector<std::size_t> order(parameters);
  for (std::size_t i = 0; i < parameters; ++i) {
    order[i] = parameters - 1 - i;
  }
  return order;
}

std::vector<std::size_t> order_of(std::span<const ParameterFacts> facts,
                                  std::span<const std::string> names) {
  std::map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    index.emplace(facts[i].name, i);
  }
  std::vector<std::size_t> order;
  for (const std::string& name : names) {
    const auto found = index.find(name);
    require(found != index.end(),
            "the order of parameters names '{}', which the model has not, or twice", name);
    order.push_back(found->second);
    index.erase(found);
  }
  require(index.empty(), "the order of parameters leaves out '{}'",
          index.empty() ? "" : index.begin()->first);
  return order;
}

}  // namespace starling::train
