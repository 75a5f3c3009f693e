#include "starling/comm/window.h"

#include <algorithm>
#include <utility>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

void add_one(std::vector<AckEntry>& entries, std::uint64_t operation) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->operation == operation) {
      ++entry->count;
      return;
    }
  }
  entries.push_back({operation, 1});
}

}  // namespace

bool Window::admits(std::uint64_t operation) const {
  if (in_flight_ < limit_) {
    return true;
  }
  std::uint64_t ahead = 0;
  for (const AckEntry& entry : sent_) {
    ahead += entry.operation <= operation ? entry.count : 0;
  }
  return ahead < limit_;
}

void Window::sent(std::uint64_t operation) {
  add_one(sent_, operation);
  ++in_flight_;
}

void Window::acknowledged(AckEntry entry) {
  const auto known = std::find_if(sent_.begin(), sent_.end(), [&](const AckEntry& e) {
    return e.operation == entry.operation;
  });
  check(known != sent_.end() && known->count >= entry.count,
        "{} messages of operation {} acknowledged that were never sent", entry.count,
        entry.operation);
  in_flight_ -= entry.count;
  known->count -= entry.count;
  if (known->count == 0) {
    sent_.erase(known);
  }
}

bool Window::consumed(std::uint64_t operation) {
  add_one(consumed_, operation);
  return ++owed_ >= limit_ / 2;
}

std::vector<AckEntry> Window::take_acks() {
  owed_ = 0;
  return std::exchange(consumed_, {});
}

}  // namespace starling::comm
