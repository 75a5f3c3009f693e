// Rounds go on when a worker dies or stops; real processes, which audit themselves
// (rounds_program): every average is what its row says, every sync is the same on all survivors.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "tests/workers/crew.h"

namespace starling::test {
namespace {

using std::chrono::milliseconds;

const std::string kProgram = STARLING_ROUNDS_PROGRAM;

int times() {
  const char* text = std::getenv("STARLING_KILLS");
  return text == nullptr ? 3 : std::stoi(text);
}

double number_after(const std::string& output, const std::string& word) {
  const std::size_t at = output.find("\n" + word + " ");
  EXPECT_NE(at, std::string::npos) << word << " is not in: " << output;
  return at == std::string::npos ? 0 : std::stod(output.substr(at + word.size() + 2));
}

class RoundsLoss : public testing::TestWithParam<std::string> {};

TEST_P(RoundsLoss, SurvivorsGoOn) {
  std::mt19937 random(3);
  double longest = 0;
  double voids = 0;
  for (int i = 0; i < times(); ++i) {
    const std::size_t workers = 4 + static_cast<std::size_t>(i % 2);
    Crew crew(workers, {kProgram, "400", "--algorithms", GetParam(), "--lossy"});
    for (std::size_t r = 0; r < workers; ++r) {
      crew.wait_for(r, "step 10\n");
    }
    std::this_thread::sleep_for(milliseconds(random() % 500));
    const std::size_t victim = random() % workers;
    crew.signal(victim, SIGKILL);
    for (std::size_t r = 0; r < workers; ++r) {
      if (r == victim) {
        continue;
      }
      EXPECT_EQ(crew.wait(r), 0) << "victim " << victim << ", worker " << r << ": "
                                 << crew.output(r);
      const std::string said = crew.output(r);
      // Far more than it takes, far less than any time-out.
      EXPECT_LT(number_after(said, "waited"), 5) << said;
      longest = std::max(longest, number_after(said, "waited"));
      voids += number_after(said, "void") / static_cast<double>(workers - 1);
    }
    if (HasFailure()) {
      return;
    }
  }
  std::printf("%d kills: %.2f void rounds per loss and survivor; the longest wait was %.0f ms\n",
              times(), voids / times(), longest * 1e3);
}

// Nothing is void: without --lossy that would be a failure.
TEST_P(RoundsLoss, AStoppedWorkerOnlyDelays) {
  Crew crew(4, {kProgram, "400", "--algorithms", GetParam()});
  crew.wait_for(1, "step 10\n");
  crew.signal(1, SIGSTOP);
  std::this_thread::sleep_for(milliseconds(1500));
  crew.signal(1, SIGCONT);
  for (std::size_t r = 0; r < crew.size(); ++r) {
    EXPECT_EQ(crew.wait(r), 0) << crew.output(r);
    EXPECT_NE(crew.output(r).find("done"), std::string::npos) << crew.output(r);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, RoundsLoss,
                         testing::Values("wagma", "starling", "all-reduce", "eager-solo"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace starling::test
