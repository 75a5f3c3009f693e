#include "starling/comm/averaging.h"

namespace starling::comm {
namespace {

Weights plus_one(double members) {
  const double share = 1 / (members + 1);
  return {.of_result = share, .of_own = share, .divisor = members + 1};
}

Weights mean(const Outcome& outcome) {
  if (outcome.form == Form::Mix) {
    return {.of_result = 1, .of_own = 0, .divisor = 1};
  }
  const auto members = static_cast<double>(outcome.members.size());
  if (outcome.self_weight == 0) {
    return {.of_result = 1 / members, .of_own = 0, .divisor = members};
  }
  const double other = (1 - outcome.self_weight) / (members - 1);
  return {.of_result = other, .of_own = outcome.self_weight - other, .divisor = 1 / other};
}

}  // namespace

Weights weights_of(Rule rule, const Outcome& outcome, Step step) {
  const auto members = static_cast<double>(outcome.members.size());
  const bool fresh = outcome.own == step;
  switch (rule) {
    case Rule::Mean:
      break;
    case Rule::FreshOrLate:
      return fresh ? mean(outcome) : plus_one(members);
    case Rule::AlwaysPlusOne:
      return outcome.is_sync ? mean(outcome) : plus_one(members);
  }
  return mean(outcome);
}

}  // namespace starling::comm
