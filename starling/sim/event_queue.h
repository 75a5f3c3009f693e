// The events of a virtual network in the order of their time, and of their making where times are
// equal: the one order that makes every run of a seed the same. A heap with four children per node,
// which keeps siblings in one cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "starling/base/time.h"

namespace starling::sim {

struct Event {
  SimTime at{};
  std::uint64_t order = 0;
  std::uint32_t kind = 0;
  std::uint32_t subject = 0;

  bool before(const Event& other) const {
    return at != other.at ? at < other.at : order < other.order;
  }
};

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  const Event& first() const { return heap_.front(); }

  void push(SimTime at, std::uint32_t kind, std::uint32_t subject) {
    insert({at, made_++, kind, subject});
  }
  // An event that was taken out and put off: it stays ahead of those made after it.
  void put_back(Event event, SimTime at) {
    event.at = at;
    insert(event);
  }

  // Requires: not empty.
  Event pop() {
    const Event top = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    const std::size_t n = heap_.size();
    std::size_t i = 0;
    for (std::size_t child = 1; child < n; child = 4 * i + 1) {
      std::size_t least = child;
      for (std::size_t c = child + 1; c < child + 4 && c < n; ++c) {
        least = heap_[c].before(heap_[least]) ? c : least;
      }
      if (!heap_[least].before(last)) {
        break;
      }
      heap_[i] = heap_[least];
      i = least;
    }
    if (n > 0) {
      heap_[i] = last;
    }
    return top;
  }

 private:
  void insert(const Event& event) {
    std::size_t i = heap_.size();
    heap_.push_back(event);
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!event.before(heap_[parent])) {
        break;
      }
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = event;
  }

  std::vector<Event> heap_;
  std::uint64_t made_ = 0;
};

}  // namespace starling::sim
