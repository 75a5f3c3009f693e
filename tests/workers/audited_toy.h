// A toy that real workers train, whose every contribution can be told from every other: what a
// result holds is read off its numbers, and compared with what the ledger says.
//
//   averaged models   the update overwrites the model: x = payload(rank, step)
//   gradients         g = payload(rank, step)
//   held models       the update adds payload(rank, step); the one after a sync adds nothing, so
//                     that the sync's own bits are seen
//
// It computes and writes on the application thread, slowly and in pieces: whoever reads what is
// being written finds elements that differ, and all elements of every result have to be the same.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "starling/base/random.h"
#include "starling/comm/step.h"
#include "starling/comm/workers.h"

namespace starling::test {

// Whole numbers of 40 bits: sums of thousands are exact.
double payload(Rank rank, Step step);

// The value that all of `values` have. Throws Error{Bug} if they differ.
double only_value(std::span<const double> values, std::string_view what);

// Writes `value` everywhere, with pauses; `add`: adds it.
void write_slowly(std::span<double> values, double value, bool add = false);

class AuditedToy final : public comm::Application {
 public:
  struct Options {
    const topology::Algorithm* algorithm = nullptr;
    std::size_t elements = 1000;
    std::uint32_t sync_period = 10;
    std::uint64_t seed = 1;
  };
  AuditedToy(comm::Workers& workers, const Options& options);

  comm::Buffer model() override { return comm::output(std::span(model_)); }
  comm::Buffer gradient() override { return comm::output(std::span(gradient_)); }
  Task<void> compute(Step step) override;
  void update(Step step, comm::Buffer model) override;
  Task<void> apart(std::function<void()> work) override { return workers_.apart(std::move(work)); }

  // To be called after every step, on the engine's thread.
  void step_ended();
  // By step: the model after it, or the mean of gradients that it used.
  const std::vector<double>& values() const { return values_; }
  // What the update of `step` adds to a held model.
  static double change(Rank rank, Step step, std::uint32_t sync_period) {
    return (step.value + 1) % sync_period == 0 ? 0 : payload(rank, step);
  }

 private:
  bool sends_gradients() const {
    return options_.algorithm->payload == topology::Payload::Gradients;
  }

  comm::Workers& workers_;
  Options options_;
  RandomSequence random_;
  std::vector<double> model_;
  std::vector<double> gradient_;
  std::vector<double> values_;
};

}  // namespace starling::test
