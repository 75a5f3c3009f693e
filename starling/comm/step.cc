#include "starling/comm/step.h"

#include <array>
#include <utility>

#include "starling/base/error.h"
#include "starling/base/running.h"
#include "starling/comm/held_model.h"
#include "starling/comm/snapshots.h"

namespace starling::comm {
namespace {

using topology::Payload;

// model = weights applied to result and model.
void average_into(const Arithmetic& arithmetic, Buffer model, ConstBuffer result,
                  const Weights& weights) {
  const std::array<ConstBlob, 2> sources = {result.blob, model.blob};
  const std::array<double, 2> shares = {weights.of_result, weights.of_own};
  const std::size_t terms = weights.of_own == 0 ? 1 : 2;
  arithmetic.mix(model.type, model.blob, std::span(sources).first(terms),
                 std::span(shares).first(terms));
}

class Steps {
 public:
  Steps(Engine& engine, Application& application, const StepOptions& options)
      : engine_(engine), application_(application), options_(options) {}

  Task<StepReport> run() {
    const topology::Algorithm& row = *options_.algorithm;
    if (row.payload == Payload::HeldModel || row.missing == topology::Missing::LatestModel) {
      return held();
    }
    if (row.payload == Payload::ParametersAndPushWeight) {
      return published(&Steps::push_steps);
    }
    if (row.payload == Payload::Gradients) {
      return published(&Steps::gradient_steps);
    }
    const bool mixed_first =
        row.one_step_behind || row.gradient_at == topology::GradientAt::OwnMixedBeforeUpdate;
    return published(mixed_first ? &Steps::mixing_steps : &Steps::averaging_steps);
  }

 private:
  using Body = Task<void> (Steps::*)(Snapshots&, Rounds&);

  RoundsOptions rounds_options() const {
    const topology::Algorithm& row = *options_.algorithm;
    RoundsOptions rounds;
    rounds.trigger = options_.trigger.value_or(trigger_of(row));
    rounds.bucket = options_.bucket;
    rounds.push = row.payload == Payload::ParametersAndPushWeight;
    rounds.series = options_.series;
    if (options_.together) {
      rounds.last = local() ? options_.steps / options_.sync_period.value_or(1) : options_.steps;
    }
    // A model that all have in common stays so when a worker is lost; and local SGD has no rounds
    // but syncs.
    const bool common = row.gradient_at == topology::GradientAt::CommonModel;
    rounds.sync_period = local() || common ? std::optional<std::uint32_t>(1) : options_.sync_period;
    return rounds;
  }
  bool local() const { return options_.algorithm->cadence == topology::Cadence::EveryPeriod; }
  bool in_person() const { return rounds_options().trigger.when == TriggerOptions::When::All; }
  Rounds::Observer observer() const {
    return [ledger = options_.ledger](const Outcome& outcome) {
      if (ledger != nullptr) {
        ledger->note(outcome);
      }
    };
  }
  const Arithmetic& arithmetic() const { return engine_.arithmetic(); }

  // Runs `body` beside the rounds; whatever ends the one ends the other.
  Task<void> beside(Rounds& rounds, Task<void> body) {
    Running<void> loop(rounds.run());
    std::exception_ptr error;
    try {
      co_await body;
      if (options_.together) {
        co_await rounds.end_together();
      }
    } catch (...) {
      error = std::current_exception();
    }
    rounds.leave();
    try {
      co_await loop;
    } catch (...) {
      error = error ? error : std::current_exception();
    }
    if (options_.ledger != nullptr) {
      options_.ledger->flush();
    }
    if (error) {
      std::rethrow_exception(error);
    }
  }

  void progress(Step step) const {
    if (options_.progress) {
      options_.progress(step);
    }
  }

  // --- Rows that publish snapshots ---

  Task<StepReport> published(Body body) {
    SnapshotOptions keep;
    keep.shape = options_.shape;
    keep.in_person = in_person();
    keep.accumulate = options_.algorithm->missing == topology::Missing::AccumulatedGradients;
    keep.keep_outcomes = options_.deterministic;
    Snapshots snapshots(engine_, keep);
    Rounds rounds(engine_, *options_.schedule, snapshots, rounds_options(), observer());
    if (!keep.in_person) {
      co_await publish_initial(snapshots, keep.accumulate);
    }
    co_await beside(rounds, (this->*body)(snapshots, rounds));
    co_return StepReport{snapshots.copies(), rounds.void_rounds(), rounds.epoch()};
  }

  // Who is activated before its first step contributes the initial weights; of gradients, nothing.
  Task<void> publish_initial(Snapshots& snapshots, bool nothing) {
    const Buffer into = snapshots.write();
    co_await application_.apart([&] {
      if (!nothing) {
        arithmetic().copy(into.blob, application_.model().blob);
      } else if (into.blob.data != nullptr) {
        std::fill_n(into.blob.data, into.blob.size, std::byte{0});
      }
    });
    snapshots.publish(kInitial);
  }

  Task<void> hand_over(Snapshots& snapshots, Rounds& rounds, Version v, Buffer what,
                       double push_weight = 1) {
    const Buffer into = snapshots.write();
    co_await application_.apart([&] { arithmetic().copy(into.blob, what.blob); });
    snapshots.publish(Step{static_cast<std::int64_t>(v)}, push_weight);
    rounds.arrived(v);
  }

  // model := what the outcome of version `v` makes of it; the weight of a push-sum outcome.
  Task<std::optional<double>> pick_up(Snapshots& snapshots, Rounds& rounds, Version v, Buffer model,
                                      Rule rule) {
    const Time asked = engine_.now();
    co_await rounds.ended(v);
    const Step step{static_cast<std::int64_t>(v)};
    PickUp row;
    row.step = step;
    row.waited = engine_.now() - asked;
    const std::optional<Snapshots::Picked> picked = snapshots.pick_up(v);
    rounds.look();
    std::optional<double> push_weight;
    if (picked) {
      const Weights weights = weights_of(rule, *picked->outcome, step);
      row.version = picked->outcome->version;
      row.divisor = weights.divisor;
      row.late = picked->outcome->own != step;
      push_weight = picked->outcome->push_weight;
      co_await application_.apart(
          [&] { average_into(arithmetic(), model, picked->result, weights); });
      snapshots.release();
    }
    if (options_.ledger != nullptr) {
      options_.ledger->note(row);
    }
    co_return push_weight;
  }

  // WAGMA, local SGD: update, then average.
  Task<void> averaging_steps(Snapshots& snapshots, Rounds& rounds) {
    const std::uint64_t period = local() ? options_.sync_period.value_or(1) : 1;
    for (std::uint64_t t = 0; t < options_.steps; ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      co_await application_.compute(step);
      co_await application_.apart([&] { application_.update(step, application_.model()); });
      if ((t + 1) % period == 0) {
        const Version v = t / period;
        co_await hand_over(snapshots, rounds, v, application_.model());
        co_await pick_up(snapshots, rounds, v, application_.model(), options_.rule);
      }
      progress(step);
    }
  }

  // D-PSGD, decentralized Adam: what is averaged is the model that the gradient is taken at.
  Task<void> mixing_steps(Snapshots& snapshots, Rounds& rounds) {
    for (std::uint64_t t = 0; t < options_.steps; ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      co_await hand_over(snapshots, rounds, t, application_.model());
      co_await application_.compute(step);
      co_await pick_up(snapshots, rounds, t, application_.model(), Rule::Mean);
      co_await application_.apart([&] { application_.update(step, application_.model()); });
      progress(step);
    }
  }

  // All-reduce, eager-SGD.
  Task<void> gradient_steps(Snapshots& snapshots, Rounds& rounds) {
    for (std::uint64_t t = 0; t < options_.steps; ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      co_await application_.compute(step);
      co_await hand_over(snapshots, rounds, t, application_.gradient());
      co_await pick_up(snapshots, rounds, t, application_.gradient(), Rule::Mean);
      co_await application_.apart([&] { application_.update(step, application_.model()); });
      progress(step);
    }
  }

  // SGP: numerators x travel, gradients are taken at z = x / weight. Overlapped, the push of step t
  // is used by step t + 1.
  Task<void> push_steps(Snapshots& snapshots, Rounds& rounds) {
    const ModelMemory memory(engine_, options_.shape);
    const Buffer x = memory.buffer();
    double weight = 1;
    const bool behind = options_.algorithm->one_step_behind;
    co_await application_.apart([&] { arithmetic().copy(x.blob, application_.model().blob); });
    for (std::uint64_t t = 0; t < options_.steps; ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      if (behind) {
        co_await hand_over(snapshots, rounds, t, x, weight);
      }
      co_await application_.compute(step);
      if (!behind) {
        co_await application_.apart([&] { application_.update(step, x); });
        co_await hand_over(snapshots, rounds, t, x, weight);
      }
      weight = (co_await pick_up(snapshots, rounds, t, x, Rule::Mean)).value_or(weight);
      co_await application_.apart([&] {
        if (behind) {
          application_.update(step, x);
        }
        average_into(arithmetic(), application_.model(), {x.type, x.blob},
                     {.of_result = 1 / weight, .of_own = 0, .divisor = weight});
      });
      progress(step);
    }
  }

  // --- Rows in which the engine holds the model ---

  Task<StepReport> held() {
    HeldModel model(engine_, options_.shape);
    Rounds rounds(engine_, *options_.schedule, model, rounds_options(), observer());
    model.on_free([&] { rounds.look(); });
    co_await hand_in(model, std::nullopt, 0);
    co_await beside(rounds, held_steps(model, rounds));
    co_return StepReport{model.copies(), rounds.void_rounds(), rounds.epoch()};
  }

  // y := the model, or y + the update of `step`; then the model := y.
  Task<void> hand_in(HeldModel& model, std::optional<Step> step, std::int64_t updates) {
    const HeldModel::Update update = co_await model.lock();
    co_await application_.apart([&] {
      const Buffer own = application_.model();
      if (!step) {
        return arithmetic().copy(update.now.blob, own.blob);
      }
      if (update.was.blob.data != update.now.blob.data) {
        arithmetic().copy(update.now.blob, update.was.blob);
      }
      application_.update(*step, update.now);
      arithmetic().copy(own.blob, update.now.blob);
    });
    model.unlock(updates);
  }

  Task<void> held_steps(HeldModel& model, Rounds& rounds) {
    const bool waits = options_.algorithm->one_step_behind;
    for (std::uint64_t t = 0; t < options_.steps; ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      co_await application_.compute(step);
      const Time asked = engine_.now();
      if (waits) {
        co_await rounds.ended(t);
      }
      PickUp row;
      row.step = step;
      row.version = t;
      row.waited = engine_.now() - asked;
      if (options_.ledger != nullptr) {
        options_.ledger->note(row);
      }
      co_await hand_in(model, step, static_cast<std::int64_t>(t) + 1);
      rounds.arrived(t + 1);
      progress(step);
    }
  }

  Engine& engine_;
  Application& application_;
  const StepOptions& options_;
};

}  // namespace

TriggerOptions trigger_of(const topology::Algorithm& algorithm) {
  TriggerOptions trigger;
  using When = TriggerOptions::When;
  switch (algorithm.trigger) {
    case topology::Trigger::AllArrived:
      trigger.when = When::All;
      break;
    case topology::Trigger::OneSideArrived:
      trigger.when = When::OneSide;
      break;
    case topology::Trigger::FirstArrived:
      trigger.when = When::First;
      break;
    case topology::Trigger::DrawnInitiator:
      trigger.when = When::Initiator;
      break;
    case topology::Trigger::WhenNeeded:
      trigger.when = When::Need;
      break;
  }
  return trigger;
}

Task<StepReport> take_steps(Engine& engine, Application& application, StepOptions options) {
  require(options.algorithm != nullptr && options.schedule != nullptr,
          "steps need an algorithm and a schedule");
  Steps steps(engine, application, options);
  co_return co_await steps.run();
}

}  // namespace starling::comm
