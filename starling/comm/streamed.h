// A contribution that is handed over and picked up part by part, so that the exchange of one part
// runs while the next is still being computed. For rows that wait for everyone: version v is what
// the application publishes for step v, its parts in order.
//
// Copies of the model: what is contributed, and the result: 2.
//
// Threads: the engine's; is_there(), weights() and the memory between publish() and the result also
// from the application's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "starling/comm/averaging.h"
#include "starling/comm/model_memory.h"
#include "starling/comm/round.h"
#include "starling/comm/signal.h"

namespace starling::comm {

class Streamed final : public Contribution {
 public:
  // `in_passing`: a part is used, and what was contributed overwritten, before its version has
  // ended. Then an interrupted version does not begin again: what has not arrived is void.
  // `first`: the first version.
  Streamed(Engine& engine, const ModelShape& shape, std::size_t parts, bool in_passing,
           Version first = 0);

  std::size_t parts() const { return parts_.size(); }
  Buffer snapshot() const { return snapshot_.buffer(); }
  ConstBuffer result() const { return {result_.buffer().type, result_.buffer().blob}; }

  // The snapshot holds part `part` of version `v`.
  void publish(std::size_t part, Version v);
  // Whether the result of that part has arrived, or never will.
  bool is_there(std::size_t part, Version v) const {
    return parts_[part].arrived.load() > v || over_.load() > v;
  }
  // How it is to be mixed with the own model; nothing if it is void. Requires: is_there().
  std::optional<Weights> weights(std::size_t part, Version v) const;

  // Contribution
  bool has(Version v) const override { return parts_.front().published > v; }
  bool is_free() const override { return true; }
  Pass begin() override;
  Task<void> ready(std::size_t part) override;
  void arrived(std::size_t part, const Outcome& outcome) override;
  Task<void> end(Outcome& outcome) override;
  void drop() override { under_way_ = false; }
  void skipped(Version v) override { over_ = v + 1; }
  bool can_repeat() const override { return !in_passing_ || !under_way_; }

 private:
  // Counts: one more than the last version.
  struct Part {
    Version published = 0;
    std::atomic<Version> arrived{0};
  };
  Version present() const { return over_.load(); }

  ModelMemory snapshot_;
  ModelMemory result_;
  std::vector<Part> parts_;
  bool in_passing_;
  bool under_way_ = false;
  std::atomic<Version> over_{0};  // the first version that is not over
  // By parity: the next version begins before all parts of this one have been picked up.
  std::array<Weights, 2> weights_;
  Signal published_;
};

}  // namespace starling::comm
