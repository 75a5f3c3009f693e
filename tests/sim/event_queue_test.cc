#include "starling/sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "starling/base/random.h"

namespace starling::sim {
namespace {

SimTime at(std::int64_t picoseconds) { return SimTime(SimDuration(picoseconds)); }

TEST(EventQueue, GivesTheEarliestFirst) {
  EventQueue queue;
  for (std::int64_t t : {5, 1, 4, 2, 3}) {
    queue.push(at(t), 0, static_cast<std::uint32_t>(t));
  }
  for (std::uint32_t t = 1; t <= 5; ++t) {
    ASSERT_FALSE(queue.empty());
    EXPECT_EQ(queue.first().at, at(t));
    EXPECT_EQ(queue.pop().subject, t);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, EqualTimesComeInTheOrderOfTheirMaking) {
  EventQueue queue;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    queue.push(at(7), i % 3, i);
  }
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const Event event = queue.pop();
    EXPECT_EQ(event.subject, i);
    EXPECT_EQ(event.kind, i % 3);
  }
}

TEST(EventQueue, WhatIsPutBackStaysAheadOfWhatWasMadeAfterIt) {
  EventQueue queue;
  for (std::uint32_t i = 0; i < 4; ++i) {
    queue.push(at(i < 2 ? 1 : 9), 0, i);
  }
  const Event first = queue.pop();
  const Event second = queue.pop();
  queue.push(at(9), 0, 4);
  queue.put_back(first, at(9));
  queue.put_back(second, at(9));
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(queue.first().at, at(9));
    EXPECT_EQ(queue.pop().subject, i);
  }
}

// The reference: what is in the queue, sorted stably by time whenever the first is taken.
class Reference {
 public:
  void push(SimTime t, std::uint32_t subject) { waiting_.push_back({t, 0, 0, subject}); }
  std::size_t size() const { return waiting_.size(); }
  std::uint32_t pop() {
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const Event& a, const Event& b) { return a.at < b.at; });
    const std::uint32_t first = waiting_.front().subject;
    waiting_.erase(waiting_.begin());
    return first;
  }

 private:
  std::vector<Event> waiting_;
};

TEST(EventQueue, RandomPushesAndPopsAgreeWithAStableSort) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    RandomSequence draw{Random(seed)};
    const std::uint64_t times = 1 + draw.below(200);  // few: many equal ones
    EventQueue queue;
    Reference reference;
    std::uint32_t made = 0;
    for (int i = 0; i < 2000; ++i) {
      if (draw.below(5) < 3) {
        const SimTime t = at(static_cast<std::int64_t>(draw.below(times)));
        queue.push(t, 0, made);
        reference.push(t, made++);
      } else if (!queue.empty()) {
        ASSERT_EQ(queue.pop().subject, reference.pop()) << "seed " << seed;
      }
      ASSERT_EQ(queue.size(), reference.size());
    }
    while (!queue.empty()) {
      ASSERT_EQ(queue.pop().subject, reference.pop()) << "seed " << seed;
    }
    EXPECT_EQ(reference.size(), 0u);
  }
}

}  // namespace
}  // namespace starling::sim
