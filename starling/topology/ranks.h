// A list of ranks that is either its own or shared: the list of everybody in a view is 16 KiB at
// 4,096 workers, too much to copy into every worker's row. Shared lists are never written to, which
// is why shared ownership is harmless here.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "starling/base/units.h"

namespace starling::topology {

class Ranks {
 public:
  Ranks() = default;
  // NOLINTBEGIN(google-explicit-constructor): lists are written where ranks are wanted
  Ranks(std::initializer_list<Rank> ranks) : own_(ranks) {}
  Ranks(std::vector<Rank> ranks) : own_(std::move(ranks)) {}
  Ranks(std::shared_ptr<const std::vector<Rank>> ranks) : shared_(std::move(ranks)) {}
  operator std::span<const Rank>() const { return list(); }
  // NOLINTEND(google-explicit-constructor)

  std::size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  auto begin() const { return list().begin(); }
  auto end() const { return list().end(); }
  Rank operator[](std::size_t index) const { return list()[index]; }
  Rank front() const { return list().front(); }
  Rank back() const { return list().back(); }
  friend bool operator==(const Ranks& a, const Ranks& b) { return a.list() == b.list(); }

 private:
  const std::vector<Rank>& list() const { return shared_ ? *shared_ : own_; }

  std::vector<Rank> own_;
  std::shared_ptr<const std::vector<Rank>> shared_;
};

}  // namespace starling::topology
