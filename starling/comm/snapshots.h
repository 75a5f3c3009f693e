// Published snapshots: the application writes into memory that nobody else touches, publishes it
// whole with its step, and never waits to do so; a round contributes the newest one at the moment
// it starts; its outcome appears whole. Nobody ever reads what somebody writes.
//
// Copies of the model: the newest snapshot, the one that a round is contributing, the newest
// outcome, the one that a round is filling, and one that the application writes or reads: 5. Rows
// that wait for everyone never need more than 2, a snapshot and an outcome.
//
// Threads: the engine's alone; the memory that is handed out may be used by any one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "starling/comm/model_memory.h"
#include "starling/comm/round.h"

namespace starling::comm {

struct SnapshotOptions {
  ModelShape shape;
  // Every version is contributed in person: a snapshot is used once, an outcome picked up once.
  bool in_person = false;
  // What is not contributed in time is added to the next (gradients), and nothing counts twice.
  bool accumulate = false;
  // Keep every outcome since the last sync, so that a late worker finds that of its own step.
  bool keep_outcomes = false;
};

class Snapshots final : public Contribution {
 public:
  Snapshots(Engine& engine, SnapshotOptions options);

  // Memory for the next snapshot; until publish() it is the application's.
  Buffer write();
  // What write() gave is the snapshot of `step`. With `accumulate` an older one that has not been
  // contributed is added to it.
  void publish(Step step, double push_weight = 1);

  // The newest outcome (or with keep_outcomes that of version `v`, if it is kept); nothing if it is
  // older than `v`. Valid until release().
  struct Picked {
    const Outcome* outcome = nullptr;
    ConstBuffer result;
  };
  std::optional<Picked> pick_up(Version v);
  void release();

  // How many copies of the model this holds at most so far.
  std::size_t copies() const { return slots_.size(); }

  // Contribution
  bool has(Version v) const override {
    return newest_ != nullptr && newest_->step.value >= static_cast<std::int64_t>(v);
  }
  // The result of a sync is for everyone: nothing replaces it before it has been picked up.
  bool is_free() const override { return newest_ != nullptr && !sync_waits_; }
  Pass begin() override;
  Task<void> end(Outcome& outcome) override;
  void drop() override;

 private:
  // A copy of the model, and how many of the roles above it has.
  struct Slot {
    Slot(Engine& engine, const ModelShape& shape) : memory(engine, shape) {}
    ModelMemory memory;
    int uses = 0;
    Step step = kInitial;
    double push_weight = 1;
    bool spent = false;  // of accumulated ones: has been contributed
    bool zero = false;   // and cleared since
    Outcome outcome;
  };
  Slot* take();
  static void drop_use(Slot*& slot);
  void add(const Slot& older, Slot& newer);

  Engine& engine_;
  SnapshotOptions options_;
  std::list<Slot> slots_;
  Slot* writing_ = nullptr;
  Slot* newest_ = nullptr;
  Slot* contributing_ = nullptr;
  Slot* filling_ = nullptr;
  Slot* outcome_ = nullptr;
  Slot* reading_ = nullptr;
  bool sync_waits_ = false;
  std::map<Version, Slot*> kept_;
};

}  // namespace starling::comm
