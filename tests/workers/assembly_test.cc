// Meetings of real workers of which one dies at a random moment, or of which some go home early:
// who is left has the same results in every call, and nobody waits for ever. STARLING_KILLS scales.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "starling/base/random.h"
#include "tests/workers/crew.h"

namespace starling::test {
namespace {

constexpr std::size_t kWorkers = 4;

std::string digest_of(Crew& crew, std::size_t worker) {
  EXPECT_EQ(crew.wait(worker), 0) << crew.output(worker);
  const std::string output = crew.output(worker);
  const std::size_t at = output.find("digest ");
  EXPECT_NE(at, std::string::npos) << "worker " << worker << ": " << output;
  return at == std::string::npos ? "" : output.substr(at, 23);
}

TEST(Assembly, ADeathAtAnyMomentLeavesTheOthersWithTheSameResults) {
  const char* text = std::getenv("STARLING_KILLS");
  const int trials = text == nullptr ? 5 : 5 * std::atoi(text);
  RandomSequence draw(Random(21));
  for (int trial = 0; trial < trials; ++trial) {
    const std::size_t who = draw.below(kWorkers);
    const std::uint64_t call = draw.below(300);
    const std::uint64_t microseconds = draw.below(400);
    SCOPED_TRACE(testing::Message()
                 << "worker " << who << " dies " << microseconds << " µs after call " << call);
    Crew crew(kWorkers, {STARLING_ASSEMBLY_PROGRAM, "400", std::to_string(who),
                         std::to_string(call), std::to_string(microseconds)});
    std::string first;
    for (std::size_t worker = 0; worker < kWorkers; ++worker) {
      if (worker == who) {
        EXPECT_EQ(crew.wait(worker), 128 + SIGKILL) << crew.output(worker);
        continue;
      }
      const std::string digest = digest_of(crew, worker);
      first = first.empty() ? digest : first;
      EXPECT_EQ(digest, first) << "worker " << worker;
    }
  }
}

// Whoever has the last result ends at once, while others may still be on their way to it.
TEST(Assembly, GoingHomeIsNoLoss) {
  for (int trial = 0; trial < 4; ++trial) {
    Crew crew(kWorkers, {STARLING_ASSEMBLY_PROGRAM, std::to_string(1 + trial), "9", "0", "0"});
    const std::string first = digest_of(crew, 0);
    for (std::size_t worker = 1; worker < kWorkers; ++worker) {
      EXPECT_EQ(digest_of(crew, worker), first) << "worker " << worker << ", " << 1 + trial;
    }
  }
}

}  // namespace
}  // namespace starling::test
