// A worker that trains by replica, desk and rounds, without torch: the threads of training under
// any sanitizer. Its model is F(x) = |x - target|^2 / 2 with a target of its own and parameters of
// several sizes. Started by a launcher: replica_program STEPS
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/connect.h"
#include "starling/comm/ledger.h"
#include "starling/comm/step.h"
#include "starling/topology/schedule.h"
#include "starling/train/assembly.h"
#include "starling/train/desk.h"
#include "starling/train/flat_layout.h"
#include "starling/train/replica.h"

namespace starling::test {
namespace {

using train::FlatLayout;
using train::ParameterFacts;

class Quadratic final : public train::Parameters {
 public:
  Quadratic(const FlatLayout& layout, double target)
      : values(layout.elements(), 0), target_(target), gradient_(layout.elements(), 0) {
    for (const FlatLayout::Place& place : layout.places()) {
      begins_.push_back(place.begin);
    }
  }
  void compute() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      gradient_[i] = values[i] - target_;
    }
  }
  const std::byte* gradient(std::size_t parameter) override {
    return reinterpret_cast<const std::byte*>(gradient_.data() + begins_[parameter]);
  }
  void drop_gradient(std::size_t) override {}
  void moved(std::size_t) override {}
  void torch_step(double, const std::byte*, double) override {}

  std::vector<double> values;

 private:
  double target_;
  std::vector<double> gradient_;
  std::vector<std::size_t> begins_;
};

class Trainer {
 public:
  Trainer(comm::Workers& workers, const std::string& algorithm, std::uint64_t steps,
          std::uint64_t series)
      : workers_(workers),
        algorithm_(topology::find_algorithm(algorithm)),
        steps_(steps),
        layout_(facts_, order_, 40),
        model_(layout_, 1 + workers.rank().value),
        optimizer_(train::SGD{.lr = 0.05}, comm::Type::Float64, layout_.elements()),
        desk_(workers),
        replica_(desk_, workers, layout_, facts_, groups_,
                 comm::output(std::span(model_.values)).blob, &optimizer_, model_, options()) {
    topology::ScheduleOptions schedule;
    schedule.workers = static_cast<std::uint32_t>(workers.size());
    schedule_ = topology::make_schedule(algorithm_.schedules[0], schedule);
    rounds_.algorithm = &algorithm_;
    rounds_.schedule = schedule_.get();
    rounds_.shape = {comm::Type::Float64, layout_.elements(), false};
    rounds_.steps = steps;
    rounds_.sync_period = 10;
    rounds_.series = series;
    for (const std::size_t end : layout_.ends()) {
      rounds_.parts.push_back(end * sizeof(double));
    }
  }

  std::vector<double> run() {
    auto program = workers_.start([this](comm::Engine& engine) { return train(engine); });
    desk_.serve_until(0);
    for (std::uint64_t t = 0; t < steps_; ++t) {
      model_.compute();
      replica_.begin_step(t, 1, 1);
      for (std::size_t bucket = 0; bucket < layout_.buckets(); ++bucket) {
        replica_.bucket_ready(bucket);
      }
      replica_.computed();
      desk_.say_computed(t);
      if (!replica_.is_ahead()) {
        desk_.serve_until(t + 1);
      }
    }
    desk_.say_finished();
    desk_.serve_to_the_end();
    program.get();
    return model_.values;
  }

 private:
  train::ReplicaOptions options() const {
    train::ReplicaOptions options;
    options.algorithm = &algorithm_;
    options.type = comm::Type::Float64;
    options.rank = workers_.rank();
    return options;
  }

  Task<void> train(comm::Engine& engine) {
    desk_.open(engine);
    std::exception_ptr error;
    try {
      co_await comm::take_steps(engine, replica_, rounds_);
    } catch (...) {
      error = std::current_exception();
    }
    desk_.close(error);
  }

  comm::Workers& workers_;
  const topology::Algorithm& algorithm_;
  std::uint64_t steps_;
  std::vector<ParameterFacts> facts_ = {{"a", 33, 2}, {"b", 7, 1}, {"c", 64, 2}, {"d", 1, 1}};
  std::vector<std::size_t> order_ = {0, 1, 2, 3};
  std::vector<train::ParameterGroup> groups_{4};
  FlatLayout layout_;
  Quadratic model_;
  train::FusedOptimizer optimizer_;
  train::Desk desk_;
  train::Replica replica_;
  std::unique_ptr<topology::Schedule> schedule_;
  comm::StepOptions rounds_;
};

void run(std::uint64_t steps) {
  const auto workers = comm::connect();
  const double middle = (1 + static_cast<double>(workers->size())) / 2;
  train::Assembly assembly(*workers, workers->next_series());
  for (const std::string name : {"all-reduce", "dadam", "wagma", "starling", "all-reduce"}) {
    const std::vector<double> model = Trainer(*workers, name, steps, workers->next_series()).run();
    for (const double value : model) {
      check(value == model.front(), "{}: elements differ, though their gradients do not", name);
    }
    // Workers' targets pull the models apart, but their mean goes to the middle; exactly so if
    // nobody is late, and only about so with WAGMA's rule, which does not keep the mean.
    const double mean = assembly.sum(model.front()) / static_cast<double>(workers->size());
    const double bound = name == "wagma" ? 0.5 : name == "starling" ? 0.05 : 1e-6;
    check(std::abs(mean - middle) < bound, "{}: a mean of {} instead of {}", name, mean, middle);
    check(std::abs(model.front() - middle) < (name == "all-reduce" ? 1e-6 : 0.5),
          "{}: {} instead of {}", name, model.front(), middle);
  }
  fmt::print("done\n");
}

}  // namespace
}  // namespace starling::test

int main(int argc, char** argv) {
  try {
    starling::test::run(argc > 1 ? std::stoull(argv[1]) : 400);
    return 0;
  } catch (const std::exception& e) {
    fmt::print("failed: {}\n", e.what());
    return 1;
  }
}
