// What workers do when one of them dies, stops, leaves or never comes; real processes.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <regex>
#include <string>
#include <thread>

#include "tests/workers/crew.h"

namespace starling::test {
namespace {

using std::chrono::milliseconds;

const std::string kProgram = STARLING_LOSS_PROGRAM;

double number_after(const std::string& output, const std::string& word) {
  const std::size_t at = output.find(word + " ");
  EXPECT_NE(at, std::string::npos) << word << " is not in: " << output;
  return at == std::string::npos ? 0 : std::stod(output.substr(at + word.size() + 1));
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int times() {
  const char* text = std::getenv("STARLING_KILLS");
  return text == nullptr ? 3 : std::stoi(text);
}

// How much is averaged meanwhile.
std::string large() {
  const char* text = std::getenv("STARLING_KILL_BYTES");
  return text == nullptr ? "20000000" : text;
}

// Everybody but the victim has named it, at once, and is at rest.
void expect_named(Crew& crew, std::size_t victim, double killed_at) {
  for (std::size_t r = 0; r < crew.size(); ++r) {
    if (r == victim) {
      continue;
    }
    EXPECT_EQ(crew.wait(r), 3) << crew.output(r);
    const std::string said = crew.output(r);
    EXPECT_NE(said.find("worker " + std::to_string(victim) + " was lost"), std::string::npos)
        << said;
    // Far more than it takes (see the soak's table), far less than any time-out.
    EXPECT_LT(number_after(said, "at") - killed_at, 5) << said;
    EXPECT_LT(number_after(said, "rest"), 0.05) << "the engine does not sleep";
  }
}

class Loss : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  std::vector<std::string> program(std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {kProgram};
    command.insert(command.end(), GetParam().begin(), GetParam().end());
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
};

TEST_P(Loss, AKilledWorkerIsNamedByAllOthers) {
  std::mt19937 random(7);
  double slowest = 0;
  for (int i = 0; i < times(); ++i) {
    Crew crew(4, program());
    for (std::size_t r = 0; r < crew.size(); ++r) {
      crew.wait_for(r, "round 1");
    }
    std::this_thread::sleep_for(milliseconds(random() % 200));
    const std::size_t victim = random() % 4;
    const double at = now();
    crew.signal(victim, SIGKILL);
    expect_named(crew, victim, at);
    for (std::size_t r = 0; r < crew.size(); ++r) {
      slowest = r == victim ? slowest : std::max(slowest, number_after(crew.output(r), "at") - at);
    }
    if (testing::Test::HasFailure()) {
      return;
    }
  }
  std::printf("%d kills; the slowest survivor had named the dead one after %.0f ms\n", times(),
              slowest * 1e3);
}

TEST_P(Loss, AStoppedWorkerOnlyDelays) {
  Crew crew(3, program({"--rounds", "40"}));
  crew.wait_for(1, "round 1");
  crew.signal(1, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  for (std::size_t r = 0; r < crew.size(); ++r) {
    EXPECT_EQ(crew.output(r).find("ended"), std::string::npos) << crew.output(r);
  }
  crew.signal(1, SIGCONT);
  for (std::size_t r = 0; r < crew.size(); ++r) {
    EXPECT_EQ(crew.wait(r), 0) << crew.output(r);
  }
}

TEST_P(Loss, AWorkerThatStaysAwayIsNamed) {
  Crew crew(3, program({"--stall", "1"}));
  crew.wait_for(2, "round 1");
  crew.signal(2, SIGSTOP);
  for (const std::size_t r : {0, 1}) {
    EXPECT_EQ(crew.wait(r), 3) << crew.output(r);
    const std::string said = crew.output(r);
    EXPECT_TRUE(std::regex_search(said, std::regex("ended: .*worker 2"))) << said;
    EXPECT_LT(number_after(said, "rest"), 0.05) << "the engine does not sleep";
  }
  crew.signal(2, SIGCONT);
  EXPECT_EQ(crew.wait(2), 3) << crew.output(2);
}

INSTANTIATE_TEST_SUITE_P(Workers, Loss,
                         testing::Values(std::vector<std::string>{large()},
                                         std::vector<std::string>{large(), "--private"},
                                         std::vector<std::string>{"1000"}),
                         [](const auto& instance) {
                           return std::string(instance.param.size() > 1      ? "private"
                                              : instance.param[0].size() > 5 ? "pool"
                                                                             : "small");
                         });

TEST(LossAtTheStart, AWorkerThatDiesWhileConnecting) {
  std::mt19937 random(11);
  for (int i = 0; i < 2 * times(); ++i) {
    Crew crew(4, {kProgram, "1000"}, {"STARLING_PATIENCE=10"});
    const std::size_t victim = random() % 4;
    std::this_thread::sleep_for(milliseconds(random() % 60));
    crew.signal(victim, SIGKILL);
    for (std::size_t r = 0; r < crew.size(); ++r) {
      if (r != victim) {
        EXPECT_NE(crew.wait(r), 0);
        EXPECT_NE(crew.output(r).find("worker " + std::to_string(victim)), std::string::npos)
            << "victim " << victim << ", worker " << r << ": " << crew.output(r);
      }
    }
  }
}

TEST(LossAtTheEnd, WhoLeavesInOrderIsNoLoss) {
  for (int i = 0; i < 5; ++i) {
    Crew crew(5, {kProgram, "1000", "--rounds", "3"});
    for (std::size_t r = 0; r < crew.size(); ++r) {
      EXPECT_EQ(crew.wait(r), 0) << crew.output(r);
    }
  }
}

}  // namespace
}  // namespace starling::test
