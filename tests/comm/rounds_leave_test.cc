// Workers that leave one right after the other, at the end of their last sync, and whose engines
// have their turn only now and then: several messages are heard before any coroutine goes on.
#include <gtest/gtest.h>

#include "starling/base/running.h"
#include "tests/comm/toy.h"

namespace starling::test {
namespace {

constexpr std::uint32_t kWorkers = 5;
constexpr std::uint64_t kSteps = 4;

// Something happens every few microseconds, so that time does not leap over who has not had its
// turn.
class Clockwork final : public comm::Completion {
 public:
  explicit Clockwork(comm::Endpoint& endpoint) : endpoint_(endpoint) { wind(); }
  void finish(comm::Finish how, std::size_t) override {
    if (how == comm::Finish::Done) {
      wind();
    }
  }

 private:
  void wind() { endpoint_.timer(endpoint_.now() + std::chrono::microseconds(3), *this); }
  comm::Endpoint& endpoint_;
};

// Computes on a thread of its own, as it were: whatever it does takes a moment.
class Elsewhere final : public comm::Application {
 public:
  Elsewhere(comm::Engine& engine, std::uint64_t seed)
      : engine_(engine), random_(Random(seed, engine.rank().value)) {}
  comm::Buffer model() override { return comm::output(std::span(model_)); }
  Task<void> compute(Step) override {
    return apart([] {});
  }
  void update(Step step, comm::Buffer) override {
    model_[0] += static_cast<float>(10 * step.value + engine_.rank().value);
  }
  Task<void> apart(std::function<void()> work) override {
    co_await engine_.sleep_for(std::chrono::microseconds(1 + random_.below(100)));
    work();
  }
  float value() const { return model_[0]; }

 private:
  comm::Engine& engine_;
  RandomSequence random_;
  std::vector<float> model_ = std::vector<float>(1);
};

class LazyCrew {
 public:
  explicit LazyCrew(std::uint64_t seed) : network_(network_options(seed)), random_(Random(seed)) {
    topology::ScheduleOptions schedule_options;
    schedule_options.workers = kWorkers;
    schedule_ = topology::make_schedule("groups", schedule_options);
    const topology::Algorithm& wagma = topology::find_algorithm("wagma");
    for (std::uint32_t r = 0; r < kWorkers; ++r) {
      engines_.push_back(std::make_unique<comm::Engine>(network_.endpoint(Rank{r}), arithmetic_));
      applications_.push_back(std::make_unique<Elsewhere>(*engines_[r], seed));
    }
    comm::StepOptions options;
    options.algorithm = &wagma;
    options.schedule = schedule_.get();
    options.shape = {comm::Type::Float32, 1, false};
    options.steps = kSteps;
    options.sync_period = static_cast<std::uint32_t>(kSteps);
    clockwork_ = std::make_unique<Clockwork>(network_.endpoint(Rank{0}));
    for (std::uint32_t r = 0; r < kWorkers; ++r) {
      programs_.emplace_back(comm::take_steps(*engines_[r], *applications_[r], options));
    }
  }
  ~LazyCrew() {
    for (const auto& engine : engines_) {
      engine->close();
    }
  }

  void run() {
    while (!ended()) {
      network_.step();
      for (const auto& engine : engines_) {
        if (random_.below(12) == 0) {
          while (engine->run()) {
          }
        }
      }
    }
  }
  float model(std::uint32_t rank) const { return applications_[rank]->value(); }
  std::exception_ptr end(std::uint32_t rank) { return programs_[rank].error(); }

 private:
  static sim::NetworkOptions network_options(std::uint64_t seed) {
    sim::NetworkOptions options;
    options.ports.workers = kWorkers;
    options.jitter = 1e-5;
    options.seed = seed;
    return options;
  }
  bool ended() const {
    bool all = true;
    for (const auto& program : programs_) {
      all = all && program.done();
    }
    return all;
  }

  comm::KernelArithmetic arithmetic_;
  sim::Network network_;
  RandomSequence random_;
  std::unique_ptr<Clockwork> clockwork_;
  std::unique_ptr<topology::Schedule> schedule_;
  std::vector<std::unique_ptr<comm::Engine>> engines_;
  std::vector<std::unique_ptr<Elsewhere>> applications_;
  std::vector<Running<comm::StepReport>> programs_;
};

// A view that was installed, and another change before run() had its turn: what the first has ended
// must stay ended, or the last to leave takes its sync again, alone.
TEST(RoundsLeave, TheLastSyncIsTheSameForAll) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    LazyCrew crew(seed);
    crew.run();
    for (std::uint32_t r = 0; r < kWorkers; ++r) {
      EXPECT_EQ(text_of(crew.end(r)), "") << "seed " << seed << ", worker " << r;
      EXPECT_EQ(crew.model(r), crew.model(0)) << "seed " << seed << ", worker " << r;
    }
    if (HasFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace starling::test
