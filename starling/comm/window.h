// Flow control of control messages towards one peer, and what is owed to it in return.
//
// Rule: a message of operation k waits while `limit` or more messages of operations up to k are
// unacknowledged. A later operation can therefore never hold back an earlier one, and since all
// workers go through the operations they share in the same order, the earliest unfinished one can
// always proceed: no deadlock, and at most `limit` messages per operation under way at once.
// The receiver acknowledges in batches of limit / 2, counted when a message is consumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "starling/comm/letter.h"

namespace starling::comm {

class Window {
 public:
  // Requires: limit >= 2.
  explicit Window(std::size_t limit) : limit_(limit) {}

  // The sender's side.
  bool admits(std::uint64_t operation) const;
  void sent(std::uint64_t operation);
  void acknowledged(AckEntry entry);
  std::size_t unacknowledged() const { return in_flight_; }

  // The receiver's side. take_acks() is due when consumed() says so.
  bool consumed(std::uint64_t operation);
  std::vector<AckEntry> take_acks();

 private:
  std::size_t limit_;
  std::size_t in_flight_ = 0;
  std::size_t owed_ = 0;
  std::vector<AckEntry> sent_;      // unacknowledged, by operation
  std::vector<AckEntry> consumed_;  // not yet acknowledged, by operation
};

}  // namespace starling::comm
