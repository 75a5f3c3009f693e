// The application of a worker in virtual time: it computes and updates by sleeping, as long as the
// options say, and tells the record what it did. Part by part it works as a trainer does
// (train/replica.h): behind the gradient of each part, its exchange.
#pragma once

#include <functional>
#include <optional>

#include "starling/comm/engine.h"
#include "starling/comm/model_memory.h"
#include "starling/comm/step.h"
#include "starling/sim/training.h"
#include "starling/sim/training_record.h"

namespace starling::sim {

class Learner final : public comm::Application {
 public:
  // Everything outlives this.
  Learner(comm::Engine& engine, const TrainingOptions& options, const comm::StepOptions& steps,
          TrainingRecord& record);

  // The steps of this worker, with what this wants to be told.
  comm::StepOptions steps();

  comm::Buffer model() override { return model_.buffer(); }
  comm::Buffer gradient() override { return gradient_.buffer(); }
  Task<void> compute(Step step) override;
  void update(Step, comm::Buffer) override { updates_ = true; }
  bool update_at_once(const comm::Update&) override { return updates_ = true; }
  Task<void> apart(std::function<void()> work) override;
  bool streams() const override { return true; }
  Task<void> compute_in_parts(Step step, comm::Streaming& streaming) override;

 private:
  Task<void> spend(Slice::What what, Duration time, std::optional<std::size_t> part = {});
  Task<void> forward(Step step);
  Task<void> mix_and_update(std::size_t part, comm::Streaming& streaming);
  // Since it was last busy it has waited.
  void end_wait();

  comm::Engine& engine_;
  const TrainingOptions& options_;
  const comm::StepOptions& steps_;
  TrainingRecord& record_;
  comm::ModelMemory model_;
  comm::ModelMemory gradient_;
  Duration update_;
  bool updates_ = false;  // what apart() runs is an update
  Step step_{};
  comm::Version handed_over_ = 0;
  Time idle_since_{};
};

}  // namespace starling::sim
