// A worker's step: compute, hand over, pick up, update; one coroutine for every row of the table of
// algorithms (topology/algorithm.h), with the application's part as callbacks. Training and the
// virtual network run the same one.
//
// Order, by what is sent:
//   gradients           g = gradient(x); round; x += U(mean g)
//   parameters          x += U(gradient(x)); round; x = average          (WAGMA, local SGD)
//   parameters, mixed   round of x beside g = gradient(x); x = mix + U(g) (D-PSGD, dec. Adam)
//   push weights        x += U(gradient(z)); push; z = x / weight        (SGP)
//   held model          g = gradient(x); y += U(g) after round t; x = y  (Starling's own, AD-PSGD)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "starling/base/task.h"
#include "starling/comm/averaging.h"
#include "starling/comm/buffer.h"
#include "starling/comm/engine.h"
#include "starling/comm/ledger.h"
#include "starling/comm/model_memory.h"
#include "starling/comm/rounds.h"
#include "starling/comm/streaming.h"
#include "starling/topology/algorithm.h"
#include "starling/topology/schedule.h"

namespace starling::comm {

// An update of the model or of a part of it: where it starts and where it goes. Buffers are whole
// models; [begin, end) are the bytes that are meant.
//     into = copy = (of_own from + of_result result) + U(gradient)
struct Update {
  Step step{};
  std::size_t begin = 0;
  std::size_t end = 0;
  ConstBuffer from{};
  Buffer into{};
  Buffer copy{};         // or nothing
  ConstBuffer result{};  // or nothing: then only `from` counts
  Weights weights{.of_result = 0, .of_own = 1, .divisor = 1};
  // Contributions were rounded on the wire: from + of_result result - (1 - of_own) bf16(from), so
  // that what rounding takes away is not lost.
  bool rounded = false;
  // Of rows that send gradients: what U is to use, and times what; otherwise the own gradient.
  ConstBuffer mean_gradient{};
  double of_mean_gradient = 1;
};

// Of rows in which the engine holds the model: reads it, as it is once version `v` has ended here,
// into memory of its size. Requires: the application is between two steps.
using ReadHeld = std::function<Task<void>(Version v, Blob into)>;

// What is trained. compute() and the functions given to apart() run one at a time.
class Application {
 public:
  virtual ~Application() = default;
  // Where gradients are taken. Lives as long as the application; begins as the initial weights, the
  // same on all workers.
  virtual Buffer model() = 0;
  // Of rows that send gradients: what compute() has left, and what update() uses.
  virtual Buffer gradient() { return {}; }
  // Whether there is a step `step`; takes as long as it takes to find out.
  virtual Task<bool> more(Step /*step*/) { co_return true; }
  // The gradient at model(); takes as long as it takes.
  virtual Task<void> compute(Step step) = 0;
  // model += U(gradient), in place. `model` may be other memory than model().
  virtual void update(Step step, Buffer model) = 0;
  // The whole of `update` in one pass; false: it is done piece by piece, by update() above.
  virtual bool update_at_once(const Update& /*update*/) { return false; }
  // Push-sum: what model() is worth after a step, for whoever wants to continue from there.
  virtual void weighs(double /*push_weight*/) {}
  // Runs `work` where the application computes, and goes on when it is done.
  virtual Task<void> apart(std::function<void()> work) = 0;

  // Told once, before the first step; valid until end_holding().
  virtual void begin_holding(const ReadHeld& /*read*/) {}
  virtual void end_holding() {}

  // Whether compute_in_parts() is there, for rows that wait for everyone and send gradients, or are
  // one step behind.
  virtual bool streams() const { return false; }
  // Told once, before the first step; valid until end_streaming() has ended, however steps end.
  virtual void begin_streaming(Streaming& /*streaming*/) {}
  virtual Task<void> end_streaming() { co_return; }
  // compute() with the exchange of parts inside; of rows that are one step behind also their
  // updates.
  virtual Task<void> compute_in_parts(Step step, Streaming& /*streaming*/) { return compute(step); }
};

// Of rows that average parameters.
enum class Order : std::uint8_t {
  UpdateThenAverage,     // x += U(g(x)); x = average of x
  AverageWhileUpdating,  // x = average of x + U(g(x)): the exchange runs beside the gradient
};

struct StepOptions {
  const topology::Algorithm* algorithm = nullptr;
  const topology::Schedule* schedule = nullptr;
  ModelShape shape;
  // At most; they are numbered from `first` on, earlier ones were another run's, which this one
  // continues.
  std::uint64_t steps = 0;
  std::uint64_t first = 0;
  // Push-sum: what the model at the start is worth; the numerator is the model times this.
  double push_weight = 1;
  // All workers take just as many steps, and end together. Otherwise a worker that has finished
  // leaves, which may void what the others have under way.
  bool together = true;
  // WAGMA: every tau-th step everyone in person. Local SGD: the only steps that average.
  std::optional<std::uint32_t> sync_period;
  // In place of what the algorithm's row says.
  std::optional<TriggerOptions> trigger;
  Rule rule = Rule::FreshOrLate;
  // In place of what the algorithm's row says (D-PSGD, WAGMA, local SGD).
  std::optional<Order> order;
  // A late worker uses the outcome of its own step, not the newest.
  bool deterministic = false;
  // Rows that are one step behind: the exchange runs behind the next step; or inside this one.
  bool overlap = true;
  // Held models: gradients are taken at the model as it is when a step begins.
  bool gradient_at_mixed = false;
  // Contributions are rounded on the wire.
  bool bf16 = false;
  // Where the parts of the model end, in bytes; or how many bytes each has; neither: one part.
  std::vector<std::size_t> parts{};
  std::size_t bucket = 0;
  std::uint64_t series = 0;
  Ledger* ledger = nullptr;
  // Told every outcome, in order of versions, before the application can use it.
  Rounds::Observer observer = {};
  // Told when the application has handed over its part of a version; part by part it does that
  // itself.
  std::function<void(Version)> handed_over = {};
  // Told, before the outcome of a version, when each of its parts was under way.
  RoundsOptions::Exchanged exchanged = {};
  // Told after every step.
  std::function<void(Step)> progress;
};

struct StepReport {
  std::size_t copies = 0;  // of the model, beside the application's own
  std::uint64_t voids = 0;
  Epoch epoch = 0;
};

// Takes the steps [first, steps), and leaves when nobody needs this worker any more. Throws
// Error{Lost} if this worker was excluded or is on the smaller side of a cut.
Task<StepReport> take_steps(Engine& engine, Application& application, StepOptions options);

// What the rounds of these steps are told.
RoundsOptions rounds_of(const StepOptions& options);

// Steps from one version to the next.
std::uint64_t period_of(const StepOptions& options);

// The trigger that the algorithm's row names.
TriggerOptions trigger_of(const topology::Algorithm& algorithm);

}  // namespace starling::comm
