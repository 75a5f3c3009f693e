// The words of rounds. A round averages one version of the model inside one group, and answers four
// questions: who averages (the schedule), when it starts (the trigger), what is sent (the
// contribution) and what stands in for a worker that has not arrived (its last contribution).
//
// Versions are run in order, each exactly once on every worker; its outcome says whose contribution
// of which step is in the sum. See docs/rounds.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "starling/base/task.h"
#include "starling/base/time.h"
#include "starling/base/units.h"
#include "starling/comm/buffer.h"
#include "starling/comm/view.h"

namespace starling::comm {

// Before the first step: the initial weights.
inline constexpr Step kInitial{-1};
// Of accumulated gradients: all have been contributed before.
inline constexpr Step kNothing{-2};

// How a finished round is to be read.
enum class Form : std::uint8_t {
  Sum,  // of all members; the reader divides
  Mix,  // weighted as the schedule says; the own contribution is in it
};

// A finished round, or a void one (a worker was lost): then nothing was received.
struct Outcome {
  Version version = 0;
  Epoch epoch = 0;
  bool is_void = false;
  bool is_sync = false;  // everyone took part in person
  Form form = Form::Sum;
  std::vector<Rank> members{};  // in rank order; of a mix: those whose contributions are in it
  std::vector<Step> steps{};    // what each of them contributed
  Step own{};                   // what this worker contributed
  Step own_at_end{};            // of a held model: how many own updates are in it when it ends
  Rank activator{};             // who started it
  double push_weight = 1;       // of push-sum rounds
  double self_weight = 0;       // of a sum in a group of unequal weights: what the own model counts
  Time activated{};             // when this worker learnt that it should start
  Time started{};
  Time finished{};
  Duration exchanging{0};   // of that, while parts were under way
  std::uint64_t bytes = 0;  // of payload that this worker contributed
};

// What a worker brings to a round, and what becomes of the result. Called by the rounds of the same
// worker, on the engine's thread.
class Contribution {
 public:
  struct Pass {
    ConstBuffer in;  // immutable until end() or drop()
    Buffer out;
    Step step;  // what `in` is
    double push_weight = 1;
  };
  virtual ~Contribution() = default;
  // Whether the application has handed over what version `v` asks of it.
  virtual bool has(Version v) const = 0;
  // Whether begin() may be called now.
  virtual bool is_free() const = 0;
  // Requires: is_free(), no pass under way.
  virtual Pass begin() = 0;
  // The pass is complete: `out` holds the result.
  virtual Task<void> end(Outcome& outcome) = 0;
  // The pass was interrupted, and nothing of it is under way any more.
  virtual void drop() = 0;
  // Version `v` is void.
  virtual void skipped(Version /*v*/) {}

  // Part by part: until the next part of the pass under way may be sent; its result is in `out`,
  // and `outcome` says whose it is.
  virtual Task<void> ready(std::size_t /*part*/) { co_return; }
  virtual void arrived(std::size_t /*part*/, const Outcome& /*outcome*/) {}
  // Whether a pass that is interrupted now can begin again. The same on all workers for a version
  // that has begun.
  virtual bool can_repeat() const { return true; }
};

}  // namespace starling::comm
