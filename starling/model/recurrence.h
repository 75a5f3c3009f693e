// The recurrences, one function per family of rows. Each walks the steps of all workers and tells
// an Observation what it finds. Requires: a checked setting (predict.cc).
//
// Symbols are those of docs/runtime-model.md: x the end of a worker's step, T its computation, U
// its update, c an exchange, E the time at which an engine is free.
#pragma once

#include "starling/model/observation.h"
#include "starling/model/rounds_of_steps.h"

namespace starling::model {

// What a recurrence works with.
struct Walk {
  const Setting& setting;
  RoundsOfSteps& rounds;
  Observation& observed;

  std::int64_t steps() const { return static_cast<std::int64_t>(setting.steps); }
  // Seconds of the update of bucket k, and of all.
  double update(std::size_t k) const { return setting.updates.empty() ? 0 : setting.updates[k]; }
  double update() const {
    double sum = 0;
    for (const double u : setting.updates) {
      sum += u;
    }
    return sum;
  }
};

// Gradients of everybody, bucket by bucket inside the backward pass: all-reduce.
void walk_all_reduce(const Walk& walk);
// Exchanges of update t that update t + 1 needs, bucket by bucket: decentralized Adam.
void walk_behind(const Walk& walk);
// Everyone needed is waited for, after the update or beside the computation: local SGD, D-PSGD,
// SGP, overlapped SGP; and any row whose trigger is replaced by "all arrived".
void walk_in_person(const Walk& walk);
// Somebody's arrival starts the round, whoever has not arrived: WAGMA, eager-SGD.
void walk_activated(const Walk& walk);
// The engine holds the model: Starling's own, AD-PSGD.
void walk_held(const Walk& walk);

}  // namespace starling::model
