#include "starling/comm/averaging.h"

#include <algorithm>
#include <array>

namespace starling::comm {
namespace {

Weights plus_one(double members) {
  const double share = 1 / (members + 1);
  return {.of_result = share, .of_own = share, .divisor = members + 1};
}

Weights mean(const Outcome& outcome) {
  if (outcome.form == Form::Mix) {
    return {.of_result = 1, .of_own = 0, .divisor = 1, .exact = true};
  }
  const auto members = static_cast<double>(outcome.members.size());
  if (outcome.self_weight == 0) {
    return {.of_result = 1 / members, .of_own = 0, .divisor = members};
  }
  const double other = (1 - outcome.self_weight) / (members - 1);
  return {.of_result = other, .of_own = outcome.self_weight - other, .divisor = 1 / other};
}

// own + of_result * result - (1 - of_own) * bf16(own): what rounding takes away is not lost.
void average_rounded(const Arithmetic& arithmetic, Buffer into, ConstBuffer result, ConstBuffer own,
                     const Weights& weights) {
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  const Scratch scratch = arithmetic.scratch(kPiece);
  const std::array<double, 3> shares = {weights.of_result, 1, weights.of_own - 1};
  for (std::size_t at = 0; at < into.blob.size; at += kPiece) {
    const std::size_t end = std::min(into.blob.size, at + kPiece);
    const Blob sent = scratch.blob().slice(0, end - at);
    arithmetic.through_bf16(own.type, sent, own.blob.slice(at, end));
    const std::array<ConstBlob, 3> sources = {result.blob.slice(at, end), own.blob.slice(at, end),
                                              sent};
    arithmetic.mix(into.type, into.blob.slice(at, end), sources, shares);
  }
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

void average_into(const Arithmetic& arithmetic, Buffer into, ConstBuffer result, ConstBuffer own,
                  const Weights& weights, bool rounded) {
  if (rounded && !weights.exact) {
    return average_rounded(arithmetic, into, result, own, weights);
  }
  const std::array<ConstBlob, 2> sources = {result.blob, own.blob};
  const std::array<double, 2> shares = {weights.of_result, weights.of_own};
  const std::size_t terms = weights.of_own == 0 ? 1 : 2;
  arithmetic.mix(into.type, into.blob, std::span(sources).first(terms),
                 std::span(shares).first(terms));
}

}  // namespace starling::comm
