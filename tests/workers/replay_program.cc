// A worker that trains a noisy quadratic with WAGMA and with Starling's own rule, at a pace of its
// own; then reads the ledgers of all workers, computes the whole run again by itself, and compares
// its model with what it had: the same bits. Exit code 0: all right.
//     replay_program STEPS FOLDER
#include <fmt/format.h>

#include <fstream>
#include <thread>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/random.h"
#include "starling/comm/barrier.h"
#include "starling/comm/connect.h"
#include "starling/comm/replay.h"
#include "starling/comm/step.h"
#include "tests/workers/guarded.h"

namespace starling::test {
namespace {

constexpr std::size_t kElements = 1000;

float change(Rank rank, Step step, std::size_t element, float at) {
  const Random draw = Random(5).stream(rank.value).stream(element);
  const auto noise = static_cast<float>(draw.normal(static_cast<std::uint64_t>(step.value)));
  return -0.05F * (at - static_cast<float>(rank.value) + noise);
}

float initial(Rank, std::size_t element) { return 0.1F * static_cast<float>(element % 17); }

class Quadratic final : public comm::Application {
 public:
  explicit Quadratic(comm::Workers& workers)
      : workers_(workers), model_(kElements), by_(kElements) {
    for (std::size_t i = 0; i < kElements; ++i) {
      model_[i] = initial(workers.rank(), i);
    }
  }
  comm::Buffer model() override { return comm::output(std::span(model_)); }
  Task<void> compute(Step step) override {
    return apart([this, step] {
      for (std::size_t i = 0; i < kElements; ++i) {
        by_[i] = change(workers_.rank(), step, i, model_[i]);
      }
      const Random pace = Random(9).stream(workers_.rank().value);
      const std::uint64_t slow =
          pace.below(20, static_cast<std::uint64_t>(step.value)) == 0 ? 8 : 1;
      std::this_thread::sleep_for(std::chrono::microseconds(500 * slow));
    });
  }
  void update(Step, comm::Buffer into) override {
    auto* values = reinterpret_cast<float*>(into.blob.data);
    for (std::size_t i = 0; i < kElements; ++i) {
      values[i] += by_[i];
    }
  }
  Task<void> apart(std::function<void()> work) override { return workers_.apart(std::move(work)); }
  const std::vector<float>& values() const { return model_; }

 private:
  comm::Workers& workers_;
  std::vector<float> model_;
  std::vector<float> by_;
};

std::string path_of(const std::string& folder, const std::string& algorithm, Rank rank) {
  return fmt::format("{}/{}-{}.jsonl", folder, algorithm, rank);
}

comm::LedgerTotals train_and_replay(comm::Workers& workers, const std::string& algorithm,
                                    std::uint64_t steps, const std::string& folder,
                                    std::uint64_t series) {
  const bool held = algorithm == "starling";
  topology::ScheduleOptions schedule_options;
  schedule_options.workers = static_cast<std::uint32_t>(workers.size());
  const auto schedule = topology::make_schedule("groups", schedule_options);
  comm::Ledger ledger(workers.rank(), held,
                      comm::ledger_file(path_of(folder, algorithm, workers.rank())));
  comm::StepOptions options;
  options.algorithm = &topology::find_algorithm(algorithm);
  options.schedule = schedule.get();
  options.shape = {comm::Type::Float32, kElements, false};
  options.steps = steps;
  options.series = series;
  options.ledger = &ledger;
  if (!held) {
    options.sync_period = 10;
  }
  Quadratic quadratic(workers);
  workers.run([&](comm::Engine& engine) { return comm::take_steps(engine, quadratic, options); });
  const std::vector<Rank> everyone = workers.everyone();
  workers.run([&](comm::Engine& engine) {
    return comm::barrier(engine, {.id = series + 1, .members = everyone});
  });
  std::vector<comm::LedgerRow> rows;
  for (const Rank rank : everyone) {
    std::ifstream file(path_of(folder, algorithm, rank));
    for (comm::LedgerRow& row : comm::read_ledger(file)) {
      rows.push_back(std::move(row));
    }
  }
  comm::ReplayModel model;
  model.elements = kElements;
  model.initial = initial;
  model.update = [](Rank rank, Step step, std::span<const float> at, std::span<float> into) {
    for (std::size_t i = 0; i < into.size(); ++i) {
      into[i] += change(rank, step, i, at[i]);
    }
  };
  const auto models = comm::replay(rows, {.workers = workers.size(), .held = held}, model);
  check(models.at(workers.rank().index()) == quadratic.values(),
        "{}: worker {} arrives at other bits from the ledger", algorithm, workers.rank());
  return ledger.totals();
}

int main_of(int argc, char** argv) {
  require(argc == 3, "replay_program STEPS FOLDER");
  const auto workers = comm::connect();
  std::uint64_t series = 0;
  for (const std::string algorithm : {"wagma", "starling"}) {
    const comm::LedgerTotals totals =
        train_and_replay(*workers, algorithm, std::stoull(argv[1]), argv[2], series++);
    fmt::print("{}: the same bits; {} rounds, {:.0f} % stale, {} late\n", algorithm, totals.rounds,
               100 * totals.stale_fraction(), totals.late);
  }
  return 0;
}

}  // namespace
}  // namespace starling::test

int main(int argc, char** argv) {
  return starling::test::guarded(starling::test::main_of, argc, argv);
}
