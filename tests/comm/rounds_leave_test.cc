// Workers that leave one right after the other, at the end of their last sync, and whose engines
// have their turn only now and then: several messages are heard before any coroutine goes on.
#include <gtest/gtest.h>

#include "tests/comm/toy.h"

namespace starling::test {
namespace {

// A view that was installed, and another change before run() had its turn: what the first has ended
// must stay ended, or the last to leave takes its sync again, alone.
TEST(RoundsLeave, TheLastSyncIsTheSameForAll) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Crew crew;
    crew.workers = 5;
    crew.elements = 1;
    crew.steps_of = [](Rank) { return 4; };
    crew.step.sync_period = 4;
    crew.network.seed = seed;
    crew.network.jitter = seed % 3 == 0 ? 1e-5 : 1e-4;
    crew.network.laziness = 1e-5 * static_cast<double>(1 << seed % 8);
    crew.change = [](Rank r, Step s, std::size_t, float) {
      return static_cast<float>(10 * s.value + r.value);
    };
    crew.hop = 1e-4;
    crew.pace = [seed](Rank r, Step s) {
      return 1e-4 * Random(seed).stream(r.value).uniform(static_cast<std::uint64_t>(s.value));
    };
    const Trained t = train(crew);
    for (std::size_t r = 0; r < crew.workers; ++r) {
      ASSERT_EQ(text_of(t.ends[r]), "") << "seed " << seed << ", worker " << r;
      ASSERT_EQ(t.models[r], t.models[0]) << "seed " << seed << ", worker " << r;
    }
  }
}

}  // namespace
}  // namespace starling::test
