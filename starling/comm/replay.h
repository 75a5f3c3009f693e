// Computes a run again from the ledgers of all its workers, in a single process, to the same bits:
// who contributed which step to which sum is all that chance decided. In groups, for rows that
// average parameters after the update (WAGMA, local SGD), for held models (Starling's own, AD-PSGD)
// and for gradients (eager-SGD).
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "starling/base/units.h"
#include "starling/comm/averaging.h"
#include "starling/comm/ledger.h"

namespace starling::comm {

// What was trained, as pure functions.
struct ReplayModel {
  std::size_t elements = 0;
  std::function<float(Rank, std::size_t)> initial;
  // model += U(gradient at `at`); `model` may be what `at` is.
  std::function<void(Rank, Step, std::span<const float> at, std::span<float> model)> update;
  // Of rows that send gradients, in place of update(): the gradient at `at`; and model += U(mean).
  std::function<void(Rank, Step, std::span<const float> at, std::span<float> gradient)> gradient{};
  std::function<void(Rank, Step, std::span<const float> mean, std::span<float> model)> apply{};
};

struct ReplayOptions {
  std::size_t workers = 0;
  bool held = false;
  bool gradients = false;
  Rule rule = Rule::FreshOrLate;  // not held
};

// The model of every worker after its last recorded step. Rows of one worker are in their order.
// Throws Error{Input} if the ledger does not hold enough to compute a model.
std::vector<std::vector<float>> replay(std::span<const LedgerRow> ledger,
                                       const ReplayOptions& options, const ReplayModel& model);

}  // namespace starling::comm
