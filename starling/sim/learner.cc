#include "starling/sim/learner.h"

#include "starling/base/time_words.h"

namespace starling::sim {
namespace {

// Part `part` of `parts` equal ones; they add up to the whole.
Duration share(Duration whole, std::size_t part, std::size_t parts) {
  const auto until = [&](std::size_t count) {
    return whole.count() * static_cast<std::int64_t>(count) / static_cast<std::int64_t>(parts);
  };
  return Duration(until(part + 1) - until(part));
}

}  // namespace

Learner::Learner(comm::Engine& engine, const TrainingOptions& options,
                 const comm::StepOptions& steps, TrainingRecord& record)
    : engine_(engine),
      options_(options),
      steps_(steps),
      record_(record),
      model_(engine, steps.shape),
      gradient_(engine, steps.shape),
      update_(duration(options.update)) {}

comm::StepOptions Learner::steps() {
  comm::StepOptions steps = steps_;
  steps.observer = [this](const comm::Outcome& outcome) {
    record_.observed(engine_.rank(), outcome);
  };
  steps.exchanged = [this](std::size_t part, Time begin, Time end) {
    record_.exchanged(engine_.rank(), part, begin, end);
  };
  steps.handed_over = [this](comm::Version v) {
    handed_over_ = v;
    record_.handed_over(engine_.rank(), v, engine_.now());
  };
  steps.progress = [this](Step step) {
    end_wait();
    record_.ended(engine_.rank(), step, engine_.now());
  };
  return steps;
}

void Learner::end_wait() {
  record_.waited(engine_.rank(), step_, handed_over_, idle_since_, engine_.now());
  idle_since_ = engine_.now();
}

Task<void> Learner::spend(Slice::What what, Duration time, std::optional<std::size_t> part) {
  const Time begin = engine_.now();
  if (time > Duration(0)) {
    co_await engine_.sleep_for(time);
  }
  record_.did(what, engine_.rank(), step_, begin, engine_.now(), part);
  idle_since_ = engine_.now();
}

Task<void> Learner::forward(Step step) {
  end_wait();
  step_ = step;
  co_await spend(Slice::What::Delay, options_.delay.delay(engine_.rank(), step));
  co_await spend(Slice::What::Forward, options_.compute.at(engine_.rank(), step).forward);
}

Task<void> Learner::compute(Step step) {
  co_await forward(step);
  co_await spend(Slice::What::Backward, options_.compute.at(engine_.rank(), step).backward);
}

Task<void> Learner::apart(std::function<void()> work) {
  end_wait();
  updates_ = false;
  work();
  if (updates_) {
    co_await spend(Slice::What::Update, update_);
  }
}

Task<void> Learner::compute_in_parts(Step step, comm::Streaming& streaming) {
  const bool gradients = steps_.algorithm->payload == topology::Payload::Gradients;
  co_await forward(step);
  const Duration backward = options_.compute.at(engine_.rank(), step).backward;
  for (std::size_t part = 0; part < streaming.parts(); ++part) {
    co_await spend(Slice::What::Backward, share(backward, part, streaming.parts()), part);
    if (gradients) {
      handed_over_ = static_cast<comm::Version>(step.value);
      record_.handed_over(engine_.rank(), handed_over_, engine_.now());
      streaming.publish(part, handed_over_);
    } else {
      co_await mix_and_update(part, streaming);
    }
  }
}

Task<void> Learner::mix_and_update(std::size_t part, comm::Streaming& streaming) {
  const auto v = static_cast<comm::Version>(step_.value);
  const Time begin = engine_.now();
  co_await streaming.until_there(part, v);
  record_.waited(engine_.rank(), step_, v, begin, engine_.now(), part);
  co_await spend(Slice::What::Update, share(update_, part, streaming.parts()), part);
  record_.handed_over(engine_.rank(), v + 1, engine_.now(), part);
  streaming.publish(part, v + 1);
}

}  // namespace starling::sim
