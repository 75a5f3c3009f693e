// How an application works part by part with the rounds of its step, inside its backward pass:
// when part k's gradient is there it looks for the result of that part, updates it and publishes
// it, in order.
//
// Threads: is_there(), weights() and the memory from the application's thread, the rest from the
// engine's.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "starling/base/task.h"
#include "starling/base/time.h"
#include "starling/comm/averaging.h"
#include "starling/comm/buffer.h"
#include "starling/comm/rounds.h"
#include "starling/comm/streamed.h"

namespace starling::comm {

class Streaming {
 public:
  Streaming(Streamed& streamed, Rounds& rounds, std::vector<std::size_t> ends, bool rounded);

  // Rows that mix parameters: a part is mixed with the result of the round of this step, updated,
  // and what becomes of it is published for the next. Rows that average gradients: a part is
  // published for this step, and its result used by the update after the step's round.
  std::size_t parts() const { return ends_.size(); }
  // In bytes of the flat model.
  std::pair<std::size_t, std::size_t> range(std::size_t part) const {
    return {part == 0 ? 0 : ends_[part - 1], ends_[part]};
  }
  Buffer snapshot() const { return streamed_.snapshot(); }
  ConstBuffer result() const { return streamed_.result(); }
  // Contributions are rounded on the wire.
  bool rounded() const { return rounded_; }

  bool is_there(std::size_t part, Version v) const { return streamed_.is_there(part, v); }
  std::optional<Weights> weights(std::size_t part, Version v) const {
    return streamed_.weights(part, v);
  }
  // Throws what ended the rounds.
  Task<void> until_there(std::size_t part, Version v);
  void publish(std::size_t part, Version v);

  // How long until_there() has taken since this was last asked.
  Duration take_waited() { return std::exchange(waited_, Duration(0)); }

 private:
  Streamed& streamed_;
  Rounds& rounds_;
  std::vector<std::size_t> ends_;
  bool rounded_;
  Duration waited_{0};
};

}  // namespace starling::comm
