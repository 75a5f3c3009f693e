// The own contribution of a member, piece by piece, in the form in which it travels: the input as
// it lies there, or packed to bf16 into memory that is used in turns.
//
//     Loan* loan = pieces.loan(turn, peer);
//     co_await op.returned(peer, loan);                 // the turn's last piece has been taken
//     const ConstBlob piece = pieces.piece(turn, place, range);
//     co_await op.send(peer, slot, piece, loan);
#pragma once

#include <cstddef>
#include <span>

#include "starling/comm/buffer.h"
#include "starling/comm/operation.h"
#include "starling/comm/segments.h"

namespace starling::comm {

class Pieces {
 public:
  struct Room {
    std::size_t turns = 1;    // pieces on their way to one member at the same time
    std::size_t places = 1;   // different pieces of one turn
    std::size_t longest = 0;  // bytes of the input in one piece
  };

  Pieces(Operation& op, ConstBuffer in, Precision precision, Room room)
      : op_(op),
        in_(in),
        packs_(precision != Precision::Full),
        room_(room),
        fewer_(shrink(in.type, precision)) {
    if (packs_) {
      packed_ = op.scratch(room.turns * room.places * on_wire(room.longest));
      loans_ = op.loans(room.turns * op.count());
    }
  }

  // How many bytes on the wire `bytes` of the input are.
  std::size_t on_wire(std::size_t bytes) const { return bytes / fewer_; }

  // None where pieces are sent from the input itself.
  Loan* loan(std::size_t turn, std::size_t peer) const {
    return packs_ ? &loans_[turn % room_.turns * op_.count() + peer] : nullptr;
  }

  // Requires: the loans of what lay in this place a round of turns ago have been returned.
  ConstBlob piece(std::size_t turn, std::size_t place, Segments::Range range) const {
    const ConstBlob from = in_.blob.slice(range.begin, range.end);
    if (!packs_) {
      return from;
    }
    const std::size_t begin = (turn % room_.turns * room_.places + place) * on_wire(room_.longest);
    const Blob into = packed_.slice(begin, begin + on_wire(range.size()));
    op_.arithmetic().pack(in_.type, into, from);
    return into;
  }

  // The sum of pieces, in this form, of all members in rank order.
  void sum(Blob into, std::span<const ConstBlob> pieces) const {
    packs_ ? op_.arithmetic().sum_packed(in_.type, into, pieces)
           : op_.arithmetic().sum(in_.type, into, pieces);
  }

 private:
  Operation& op_;
  ConstBuffer in_;
  bool packs_;
  Room room_;
  std::size_t fewer_;
  Blob packed_;
  std::span<Loan> loans_;
};

}  // namespace starling::comm
