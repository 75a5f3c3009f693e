#include "starling/comm/streamed.h"

#include "starling/base/error.h"

namespace starling::comm {

Streamed::Streamed(Engine& engine, const ModelShape& shape, std::size_t parts, bool in_passing,
                   Version first)
    : snapshot_(engine, shape),
      result_(engine, shape),
      parts_(parts),
      in_passing_(in_passing),
      over_(first),
      published_(engine) {
  check(parts > 0, "a model of no parts");
}

void Streamed::publish(std::size_t part, Version v) {
  parts_.at(part).published = v + 1;
  published_.raise();
}

std::optional<Weights> Streamed::weights(std::size_t part, Version v) const {
  if (parts_[part].arrived.load() > v) {
    return weights_[v % 2];
  }
  return std::nullopt;
}

Contribution::Pass Streamed::begin() {
  under_way_ = true;
  return {.in = {snapshot_.buffer().type, snapshot_.buffer().blob},
          .out = result_.buffer(),
          .step = Step{static_cast<std::int64_t>(present())}};
}

Task<void> Streamed::ready(std::size_t part) {
  while (parts_[part].published <= present()) {
    co_await published_;
  }
}

void Streamed::arrived(std::size_t part, const Outcome& outcome) {
  weights_[outcome.version % 2] = weights_of(Rule::Mean, outcome, outcome.own);
  if (in_passing_) {
    parts_[part].arrived = outcome.version + 1;
  }
}

Task<void> Streamed::end(Outcome& outcome) {
  outcome.own_at_end = outcome.own;
  under_way_ = false;
  for (Part& part : parts_) {
    part.arrived = outcome.version + 1;
  }
  over_ = outcome.version + 1;
  co_return;
}

}  // namespace starling::comm
