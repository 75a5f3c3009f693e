// How an outcome becomes a worker's model: averaging rules as data.
#pragma once

#include <cstdint>

#include "starling/comm/round.h"

namespace starling::comm {

enum class Rule : std::uint8_t {
  // The result, weighted as the schedule says; the own contribution is in it.
  Mean,
  // WAGMA: fresh (the own model of this step is in the sum) divides by S; late adds its own model
  // and divides by S + 1.
  FreshOrLate,
  // What WAGMA's authors released: adds the own model and divides by S + 1 even if it is in the
  // sum.
  AlwaysPlusOne,
};

// model = of_result * result + of_own * own model
struct Weights {
  double of_result = 0;
  double of_own = 0;
  // What the sum was divided by.
  double divisor = 1;
  // Nothing was rounded on the wire: neighbours exchange models as they are.
  bool exact = false;
};

// For the worker at `step`.
Weights weights_of(Rule rule, const Outcome& outcome, Step step);

// into = of_result * result + of_own * own; `into` may be `own`. `rounded`: contributions were
// rounded on the wire, unless they were exact; then own + of_result * result - (1 - of_own) *
// bf16(own), so that what rounding takes away is not lost.
void average_into(const Arithmetic& arithmetic, Buffer into, ConstBuffer result, ConstBuffer own,
                  const Weights& weights, bool rounded);

}  // namespace starling::comm
