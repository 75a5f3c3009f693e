#include "starling/comm/step.h"

#include <algorithm>
#include <array>
#include <utility>

#include "starling/base/error.h"
#include "starling/base/running.h"
#include "starling/comm/held_model.h"
#include "starling/comm/snapshots.h"

namespace starling::comm {
namespace {

using topology::Payload;

ConstBuffer constant(Buffer buffer) { return {buffer.type, buffer.blob}; }

bool is_local(const StepOptions& options) {
  return options.algorithm->cadence == topology::Cadence::EveryPeriod;
}

// Where they end, in bytes.
std::vector<std::size_t> parts_of(const StepOptions& options) {
  std::vector<std::size_t> ends = options.parts;
  const std::size_t bytes = options.shape.bytes();
  while (options.parts.empty() && (ends.empty() ? 0 : ends.back()) < bytes) {
    const std::size_t part = options.bucket == 0 ? bytes : options.bucket;
    ends.push_back(std::min(bytes, (ends.empty() ? 0 : ends.back()) + part));
  }
  return ends;
}

// One more, as long as this lives.
class Counted {
 public:
  explicit Counted(std::size_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::size_t& count_;
};

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
    if (application_.streams() && in_person() && (row.payload == Payload::Gradients || behind())) {
      return streamed();
    }
    if (row.payload == Payload::Gradients) {
      return published(&Steps::gradient_steps);
    }
    return published(order() == Order::AverageWhileUpdating ? &Steps::mixing_steps
                                                            : &Steps::averaging_steps);
  }

 private:
  using Body = Task<void> (Steps::*)(Snapshots&, Rounds&);

  Order order() const {
    const bool mixed_first =
        behind() || options_.algorithm->gradient_at == topology::GradientAt::OwnMixedBeforeUpdate;
    return options_.order.value_or(mixed_first ? Order::AverageWhileUpdating
                                               : Order::UpdateThenAverage);
  }
  RoundsOptions rounds_options() const { return rounds_of(options_); }
  std::uint64_t period() const { return period_of(options_); }
  Rule rule() const { return options_.algorithm->one_step_behind ? Rule::Mean : options_.rule; }
  // The exchange of a step runs behind the next.
  bool behind() const { return options_.algorithm->one_step_behind && options_.overlap; }
  bool in_person() const { return rounds_options().trigger.when == TriggerOptions::When::All; }
  Rounds::Observer observer() const {
    return [this](const Outcome& outcome) {
      if (options_.ledger != nullptr) {
        options_.ledger->note(outcome);
      }
      if (options_.observer) {
        options_.observer(outcome);
      }
    };
  }
  void arrived(Rounds& rounds, Version v) const {
    if (options_.handed_over) {
      options_.handed_over(v);
    }
    rounds.arrived(v);
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

  // into = copy = from, mixed with result, + U; where the application computes.
  void apply(const Update& update) {
    if (application_.update_at_once(update)) {
      return;
    }
    if (update.result.blob.size != 0) {
      average_into(arithmetic(), update.into, update.result, update.from, update.weights,
                   update.rounded);
    } else if (update.into.blob.data != update.from.blob.data) {
      arithmetic().copy(update.into.blob, update.from.blob);
    }
    application_.update(update.step, update.into);
    if (update.copy.blob.size != 0) {
      arithmetic().copy(update.copy.blob, update.into.blob);
    }
  }
  Update update_of(Step step, ConstBuffer from, Buffer into) const {
    Update update;
    update.step = step;
    update.end = options_.shape.bytes();
    update.from = from;
    update.into = into;
    update.rounded = options_.bf16;
    return update;
  }
  Update own_update(Step step) {
    const Buffer own = application_.model();
    return update_of(step, constant(own), own);
  }
  Task<bool> more(std::uint64_t t) {
    if (t >= options_.steps) {
      co_return false;
    }
    co_return co_await application_.more(Step{static_cast<std::int64_t>(t)});
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
    snapshots.publish(nothing ? kInitial : Step{static_cast<std::int64_t>(options_.first) - 1});
  }

  Task<void> hand_over(Snapshots& snapshots, Rounds& rounds, Version v, Buffer what,
                       double push_weight = 1) {
    const Buffer into = snapshots.write();
    co_await application_.apart([&] { arithmetic().copy(into.blob, what.blob); });
    snapshots.publish(Step{static_cast<std::int64_t>(v)}, push_weight);
    arrived(rounds, v);
  }

  // Waits for version `v`, and lets `use` do with its outcome what it likes, where the application
  // computes; with nothing, if it was void. The weight of a push-sum outcome.
  using Use = std::function<void(const Snapshots::Picked*, const Weights&)>;
  Task<std::optional<double>> pick_up(Snapshots& snapshots, Rounds& rounds, Version v, Rule rule,
                                      Use use) {
    const Time asked = engine_.now();
    co_await rounds.ended(v);
    const Step step{static_cast<std::int64_t>(v)};
    PickUp row;
    row.step = step;
    row.waited = engine_.now() - asked;
    const std::optional<Snapshots::Picked> picked = snapshots.pick_up(v);
    rounds.look();
    std::optional<double> push_weight;
    Weights weights;
    if (picked) {
      weights = weights_of(rule, *picked->outcome, step);
      row.version = picked->outcome->version;
      row.divisor = weights.divisor;
      row.late = picked->outcome->own != step;
      push_weight = picked->outcome->push_weight;
    }
    co_await application_.apart([&] { use(picked ? &*picked : nullptr, weights); });
    if (picked) {
      snapshots.release();
    }
    if (options_.ledger != nullptr) {
      options_.ledger->note(row);
    }
    co_return push_weight;
  }

  // model := what the outcome makes of it.
  Use average(Buffer model) {
    return [this, model](const Snapshots::Picked* picked, const Weights& weights) {
      if (picked != nullptr) {
        average_into(arithmetic(), model, picked->result, constant(model), weights, options_.bf16);
      }
    };
  }

  // WAGMA, local SGD: update, then average.
  Task<void> averaging_steps(Snapshots& snapshots, Rounds& rounds) {
    for (std::uint64_t t = options_.first; co_await more(t); ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      co_await application_.compute(step);
      Update update = own_update(step);
      const bool averages = (t + 1) % period() == 0;
      if (averages) {
        update.copy = snapshots.write();
      }
      co_await application_.apart([&] { apply(update); });
      if (averages) {
        const Version v = t / period();
        snapshots.publish(Step{static_cast<std::int64_t>(v)});
        arrived(rounds, v);
        co_await pick_up(snapshots, rounds, v, rule(), average(application_.model()));
      }
      progress(step);
    }
  }

  // D-PSGD, decentralized Adam: what is averaged is the model that the gradient is taken at.
  Task<void> mixing_steps(Snapshots& snapshots, Rounds& rounds) {
    for (std::uint64_t t = options_.first; co_await more(t); ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      const bool averages = (t + 1) % period() == 0;
      const Version v = t / period();
      if (averages) {
        co_await hand_over(snapshots, rounds, v, application_.model());
      }
      co_await application_.compute(step);
      if (!averages) {
        co_await application_.apart([&] { apply(own_update(step)); });
        progress(step);
        continue;
      }
      const Use use = [&](const Snapshots::Picked* picked, const Weights& weights) {
        Update update = own_update(step);
        if (picked != nullptr) {
          update.result = picked->result;
          update.weights = weights;
        }
        apply(update);
      };
      co_await pick_up(snapshots, rounds, v, rule(), use);
      progress(step);
    }
  }

  // All-reduce, eager-SGD.
  Task<void> gradient_steps(Snapshots& snapshots, Rounds& rounds) {
    for (std::uint64_t t = options_.first; co_await more(t); ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      co_await application_.compute(step);
      co_await hand_over(snapshots, rounds, t, application_.gradient());
      co_await pick_up(snapshots, rounds, t, Rule::Mean, average(application_.gradient()));
      co_await application_.apart([&] {
        Update update = own_update(step);
        update.mean_gradient = constant(application_.gradient());
        apply(update);
      });
      progress(step);
    }
  }

  // SGP: numerators x travel, gradients are taken at z = x / weight. Overlapped, the push of step t
  // is used by step t + 1.
  Task<void> push_steps(Snapshots& snapshots, Rounds& rounds) {
    const ModelMemory memory(engine_, options_.shape);
    const Buffer x = memory.buffer();
    double weight = options_.push_weight;
    const bool behind = this->behind();
    co_await application_.apart([&] {
      const Buffer z = application_.model();
      average_into(arithmetic(), x, constant(z), constant(z),
                   {.of_result = weight, .of_own = 0, .divisor = 1 / weight}, false);
    });
    for (std::uint64_t t = options_.first; co_await more(t); ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      if (behind) {
        co_await hand_over(snapshots, rounds, t, x, weight);
      }
      co_await application_.compute(step);
      if (!behind) {
        co_await application_.apart([&] { apply(update_of(step, constant(x), x)); });
        co_await hand_over(snapshots, rounds, t, x, weight);
      }
      weight = (co_await pick_up(snapshots, rounds, t, Rule::Mean, average(x))).value_or(weight);
      co_await application_.apart([&] {
        if (behind) {
          apply(update_of(step, constant(x), x));
        }
        const Buffer model = application_.model();
        average_into(arithmetic(), model, constant(x), constant(model),
                     {.of_result = 1 / weight, .of_own = 0, .divisor = weight}, false);
        application_.weighs(weight);
      });
      progress(step);
    }
  }

  // --- Rows that exchange part by part, inside the backward pass ---

  Task<StepReport> streamed() {
    const bool gradients = options_.algorithm->payload == Payload::Gradients;
    const std::vector<std::size_t> ends = parts_of(options_);
    Streamed contribution(engine_, options_.shape, ends.size(), !gradients, options_.first);
    Rounds rounds(engine_, *options_.schedule, contribution, rounds_options(), observer());
    Streaming streaming(contribution, rounds, ends, options_.bf16);
    if (!gradients) {
      co_await application_.apart(
          [&] { arithmetic().copy(streaming.snapshot().blob, application_.model().blob); });
    }
    application_.begin_streaming(streaming);
    std::exception_ptr error;
    try {
      co_await beside(rounds, streamed_steps(streaming, gradients));
    } catch (...) {
      error = std::current_exception();
    }
    co_await application_.end_streaming();
    if (error) {
      std::rethrow_exception(error);
    }
    co_return StepReport{2, rounds.void_rounds(), rounds.epoch()};
  }

  Task<void> streamed_steps(Streaming& streaming, bool gradients) {
    for (std::size_t part = 0; part < streaming.parts() && !gradients; ++part) {
      streaming.publish(part, options_.first);
    }
    for (std::uint64_t t = options_.first; co_await more(t); ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      co_await application_.compute_in_parts(step, streaming);
      if (gradients) {
        co_await streaming.until_there(streaming.parts() - 1, t);
        co_await application_.apart([&] {
          const std::optional<Weights> weights = streaming.weights(0, t);
          Update update = own_update(step);
          update.mean_gradient = weights ? streaming.result() : constant(streaming.snapshot());
          update.of_mean_gradient = weights ? weights->of_result : 1;
          apply(update);
        });
      }
      note_pick_up(streaming, step);
      progress(step);
    }
  }

  void note_pick_up(Streaming& streaming, Step step) {
    const auto v = static_cast<Version>(step.value);
    PickUp row;
    row.step = step;
    row.waited = streaming.take_waited();
    if (const std::optional<Weights> weights = streaming.weights(streaming.parts() - 1, v)) {
      row.version = v;
      row.divisor = weights->divisor;
    }
    if (options_.ledger != nullptr) {
      options_.ledger->note(row);
    }
  }

  // --- Rows in which the engine holds the model ---

  Task<StepReport> held() {
    HeldModel model(engine_, options_.shape, options_.bf16);
    Rounds rounds(engine_, *options_.schedule, model, rounds_options(), observer());
    model.on_free([&] { rounds.look(); });
    co_await begin_held(model);
    std::size_t readers = 0;
    application_.begin_holding(
        [&](Version v, Blob into) { return read_held(model, rounds, v, into, readers); });
    std::exception_ptr error;
    try {
      co_await beside(rounds, held_steps(model, rounds));
    } catch (...) {
      error = std::current_exception();
    }
    application_.end_holding();
    while (readers > 0) {
      co_await engine_.yield();
    }
    if (error) {
      std::rethrow_exception(error);
    }
    co_return StepReport{model.copies(), rounds.void_rounds(), rounds.epoch()};
  }

  Task<void> read_held(HeldModel& model, Rounds& rounds, Version v, Blob into,
                       std::size_t& readers) {
    const Counted counted(readers);
    co_await rounds.ended(v);
    const ConstBuffer y = co_await model.lock_to_read();
    arithmetic().copy(into, y.blob);
    model.unlock(model.updates());
  }

  // y := the initial model.
  Task<void> begin_held(HeldModel& model) {
    const HeldModel::Update memory = co_await model.lock();
    co_await application_.apart(
        [&] { arithmetic().copy(memory.now.blob, application_.model().blob); });
    model.unlock(static_cast<std::int64_t>(options_.first));
  }

  // y := y + the update of `step`; then the model := y.
  Task<void> hand_in(HeldModel& model, Step step) {
    const HeldModel::Update memory = co_await model.lock();
    Update update = update_of(step, memory.was, memory.now);
    if (memory.share != 1) {
      update.result = memory.was;
      update.weights = {.of_result = memory.share, .of_own = 0, .divisor = 1 / memory.share};
      update.rounded = false;
    }
    update.copy = application_.model();
    co_await application_.apart([&] { apply(update); });
    model.unlock(step.value + 1);
  }

  // The model := y, with what rounds have brought since.
  Task<void> look_at(HeldModel& model) {
    const ConstBuffer y = co_await model.lock_to_read();
    co_await application_.apart([&] { arithmetic().copy(application_.model().blob, y.blob); });
    model.unlock(model.updates());
  }

  Task<void> held_steps(HeldModel& model, Rounds& rounds) {
    const bool waits = options_.algorithm->one_step_behind;
    arrived(rounds, options_.first);
    for (std::uint64_t t = options_.first; co_await more(t); ++t) {
      const Step step{static_cast<std::int64_t>(t)};
      if (options_.gradient_at_mixed && t > options_.first) {
        co_await look_at(model);
      }
      co_await application_.compute(step);
      const Time asked = engine_.now();
      if (waits) {
        co_await rounds.ended(t);
      }
      PickUp row;
      row.step = step;
      row.version = t;
      row.waited = engine_.now() - asked;
      co_await hand_in(model, step);
      arrived(rounds, t + 1);
      if (waits && !options_.overlap && t + 1 < options_.steps) {
        const Time updated = engine_.now();
        co_await rounds.ended(t + 1);
        row.waited += engine_.now() - updated;
        co_await look_at(model);
      }
      if (options_.ledger != nullptr) {
        options_.ledger->note(row);
      }
      progress(step);
    }
  }

  Engine& engine_;
  Application& application_;
  const StepOptions& options_;
};

}  // namespace

std::uint64_t period_of(const StepOptions& options) {
  return is_local(options) ? options.sync_period.value_or(1) : 1;
}

RoundsOptions rounds_of(const StepOptions& options) {
  const topology::Algorithm& row = *options.algorithm;
  const std::uint64_t period = period_of(options);
  RoundsOptions rounds;
  rounds.trigger = options.trigger.value_or(trigger_of(row));
  rounds.parts = parts_of(options);
  rounds.bf16 = options.bf16;
  rounds.push = row.payload == Payload::ParametersAndPushWeight;
  rounds.series = options.series;
  rounds.exchanged = options.exchanged;
  rounds.first = options.first / period;
  if (options.together) {
    rounds.last = options.steps / period;
  }
  // A model that all have in common stays so when a worker is lost; and local SGD has no rounds but
  // syncs.
  const bool common = row.gradient_at == topology::GradientAt::CommonModel;
  rounds.sync_period =
      is_local(options) || common ? std::optional<std::uint32_t>(1) : options.sync_period;
  return rounds;
}

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
