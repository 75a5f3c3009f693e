// Starling's own rule: the engine holds the model y, the application hands over updates. Two
// operations act on y, each atomic:
//
//   update of this worker      y <- y + u
//   round over its group       y <- y + (average of the group's y at the start - own y at the
//   start)
//
// If no update falls inside a round, y becomes the average; if one does, the average plus that
// update. So the sum of y over all workers changes only by updates, after any interleaving, and
// every gradient counts once, with full weight.
//
// After a round that no update has fallen into, y is a multiple of the result, and is not written:
// the next update reads it there. Only if a round or a reader comes first is it put in its place.
//
// Copies of the model: y; if an update falls inside a round, y as it was at the start; the result:
// at most 3. Threads: the engine's; between lock() and unlock() the memory is the application's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "starling/comm/model_memory.h"
#include "starling/comm/round.h"
#include "starling/comm/signal.h"

namespace starling::comm {

class HeldModel final : public Contribution {
 public:
  // `rounded`: contributions are rounded on the wire, and the own start counts as rounded.
  HeldModel(Engine& engine, const ModelShape& shape, bool rounded = false);

  // Waits until nothing else acts on y. y is `share` times `was`, and becomes what is written to
  // `now`, which may be the same memory.
  struct Update {
    ConstBuffer was;
    Buffer now;
    double share = 1;
  };
  Task<Update> lock();
  // Only to read y; unlock(updates()) ends it.
  Task<ConstBuffer> lock_to_read();
  // y is what was written to `now`: one more update is in it, or, before the first, the initial
  // weights are.
  void unlock(std::int64_t updates);

  // How many updates of the own application are in y.
  std::int64_t updates() const { return updates_; }
  std::size_t copies() const { return before_ ? 3 : result_ ? 2 : 1; }
  // Told whenever y becomes free.
  void on_free(std::function<void()> listener) { on_free_ = std::move(listener); }

  // Contribution. A step label counts updates.
  bool has(Version v) const override { return updates_ >= static_cast<std::int64_t>(v); }
  bool is_free() const override { return !locked_; }
  Pass begin() override;
  Task<void> ready(std::size_t part) override;
  Task<void> end(Outcome& outcome) override;
  void drop() override;

 private:
  struct Terms {
    std::vector<ConstBlob> sources;
    std::vector<double> shares;
    bool rounded = false;  // the last source counts as it was sent
  };
  Terms terms_of(const Outcome& outcome) const;
  // y := the terms. Requires: locked.
  Task<void> write(Terms terms);
  Task<void> write_shared();
  void free();

  Engine& engine_;
  ModelShape shape_;
  bool rounded_;
  Signal free_;
  std::function<void()> on_free_;
  std::unique_ptr<ModelMemory> y_;
  // Of a round under way: y as it was when it began, once an update has fallen inside; the result.
  std::unique_ptr<ModelMemory> before_;
  std::unique_ptr<ModelMemory> result_;
  // y is so many times the result, and is not written yet.
  std::optional<double> share_;
  std::int64_t updates_ = 0;
  bool locked_ = false;
  bool under_way_ = false;
  bool touched_ = false;  // an update has fallen inside
};

}  // namespace starling::comm
