#include "starling/comm/snapshots.h"

#include <array>
#include <cstring>
#include <utility>

#include "starling/base/error.h"

namespace starling::comm {

Snapshots::Snapshots(Engine& engine, SnapshotOptions options)
    : engine_(engine), options_(options) {}

Snapshots::Slot* Snapshots::take() {
  for (Slot& slot : slots_) {
    if (slot.uses == 0) {
      slot.uses = 1;
      return &slot;
    }
  }
  slots_.emplace_back(engine_, options_.shape);
  slots_.back().uses = 1;
  return &slots_.back();
}

void Snapshots::drop_use(Slot*& slot) {
  if (slot != nullptr) {
    --std::exchange(slot, nullptr)->uses;
  }
}

void Snapshots::add(const Slot& older, Slot& newer) {
  const Buffer into = newer.memory.buffer();
  const std::array<ConstBlob, 2> both = {older.memory.buffer().blob, into.blob};
  engine_.arithmetic().sum(options_.shape.type, into.blob, both);
}

Buffer Snapshots::write() {
  check(writing_ == nullptr, "two snapshots at once");
  if (options_.in_person) {
    drop_use(newest_);  // of a version that was void
  }
  writing_ = take();
  return writing_->memory.buffer();
}

void Snapshots::publish(Step step, double push_weight) {
  check(writing_ != nullptr, "nothing was written");
  writing_->step = step;
  writing_->push_weight = push_weight;
  writing_->spent = writing_->zero = false;
  if (options_.accumulate && newest_ != nullptr && !newest_->spent && newest_->step != kInitial) {
    add(*newest_, *writing_);
  }
  drop_use(newest_);
  newest_ = std::exchange(writing_, nullptr);
}

Contribution::Pass Snapshots::begin() {
  contributing_ = newest_;
  ++contributing_->uses;
  const Buffer in = contributing_->memory.buffer();
  const bool nothing = options_.accumulate && contributing_->spent;
  if (nothing && !contributing_->zero) {
    if (in.blob.data != nullptr) {
      std::memset(in.blob.data, 0, in.blob.size);
    }
    contributing_->zero = true;
  }
  contributing_->spent = true;
  if (options_.in_person && outcome_ != reading_) {
    drop_use(outcome_);
  }
  filling_ = take();
  return {.in = {in.type, in.blob},
          .out = filling_->memory.buffer(),
          .step = nothing ? kNothing : contributing_->step,
          .push_weight = contributing_->push_weight};
}

Task<void> Snapshots::end(Outcome& outcome) {
  outcome.own_at_end = outcome.own;
  sync_waits_ = outcome.is_sync;
  filling_->outcome = outcome;
  if (options_.keep_outcomes) {
    if (outcome.is_sync) {
      for (auto& [version, slot] : kept_) {
        drop_use(slot);
      }
      kept_.clear();
    }
    ++filling_->uses;
    kept_.emplace(outcome.version, filling_);
  }
  if (options_.in_person) {
    drop_use(newest_);
  }
  drop_use(contributing_);
  drop_use(outcome_);
  outcome_ = std::exchange(filling_, nullptr);
  co_return;
}

void Snapshots::drop() {
  // It will be contributed again: as it is, or, if a newer one has been published meanwhile, with
  // it.
  if (options_.accumulate && contributing_ != newest_ && !contributing_->zero) {
    add(*contributing_, *newest_);
  }
  contributing_->spent = contributing_->zero;
  drop_use(contributing_);
  drop_use(filling_);
}

std::optional<Snapshots::Picked> Snapshots::pick_up(Version v) {
  check(reading_ == nullptr, "two outcomes at once");
  sync_waits_ = false;
  Slot* slot = outcome_;
  if (const auto kept = kept_.find(v); kept != kept_.end()) {
    slot = kept->second;
  }
  if (slot == nullptr || slot->outcome.version < v) {
    return std::nullopt;
  }
  reading_ = slot;
  ++reading_->uses;
  return Picked{&reading_->outcome, {options_.shape.type, reading_->memory.buffer().blob}};
}

void Snapshots::release() { drop_use(reading_); }

}  // namespace starling::comm
