// Everyone sends everyone its whole contribution, and everyone sums. Chunk by chunk: while chunk q
// is summed, the next four are on their way. For few members whose contributions travel as bf16:
// two of them then send half as much as otherwise. Cost: 1 hop; every member sends and receives
// (k-1) B/f bytes, f times fewer than in memory; extra memory: 5/f chunks per member.
#include <algorithm>
#include <vector>

#include "starling/comm/all_reduce.h"
#include "starling/comm/pieces.h"
#include "starling/comm/segments.h"

namespace starling::comm {
namespace {

class Gather {
 public:
  Gather(Operation& op, ConstBuffer in, Buffer out, Precision precision)
      : op_(op),
        out_(out),
        cut_(in.blob.size, 1, op.engine().options().chunk),
        turns_(std::min(kAhead + 1, cut_.chunks())),
        own_(op, in, precision, {.turns = turns_, .places = 1, .longest = chunk(0).size()}),
        pieces_(turns_, std::vector<Request*>(op.count())),
        landing_(op.scratch(turns_ * op.count() * landing_bytes())) {}

  Task<void> run() {
    std::vector<ConstBlob> sent(cut_.chunks());
    std::size_t next = 0;
    for (std::size_t q = 0; q < cut_.chunks(); ++q) {
      for (; next < std::min(q + turns_, cut_.chunks()); ++next) {
        post(next);
        co_await vacate(next);
        sent[next] = own_.piece(next, 0, chunk(next));
        co_await scatter(next, sent[next]);
      }
      co_await reduce(q, sent[q]);
      co_await op_.engine().yield();
    }
  }

 private:
  // As in all_reduce_direct.cc.
  static constexpr std::size_t kAhead = 4;

  Segments::Range chunk(std::size_t q) const { return cut_.chunk(0, q); }
  std::size_t landing_bytes() const { return own_.on_wire(chunk(0).size()); }
  Blob landing(std::size_t q, std::size_t peer) const {
    const std::size_t begin = ((q % turns_) * op_.count() + peer) * landing_bytes();
    return landing_.slice(begin, begin + own_.on_wire(chunk(q).size()));
  }

  void post(std::size_t q) {
    for (std::size_t d = 1; d < op_.count(); ++d) {
      const std::size_t peer = op_.before(d);
      pieces_[q % turns_][peer] =
          &op_.receive(peer, static_cast<Slot>(q), landing(q, peer), "its contribution");
    }
  }

  // All go out from one place.
  Task<void> vacate(std::size_t q) {
    for (std::size_t d = 1; d < op_.count(); ++d) {
      co_await op_.returned(op_.after(d), own_.loan(q, op_.after(d)));
    }
  }

  Task<void> scatter(std::size_t q, ConstBlob piece) {
    for (std::size_t d = 1; d < op_.count(); ++d) {
      const std::size_t peer = op_.after(d);
      co_await op_.send(peer, static_cast<Slot>(q), piece, own_.loan(q, peer));
    }
  }

  Task<void> reduce(std::size_t q, ConstBlob own) {
    std::vector<ConstBlob> sources(op_.count());
    sources[op_.self()] = own;
    for (std::size_t d = 1; d < op_.count(); ++d) {
      const std::size_t peer = op_.before(d);
      co_await *pieces_[q % turns_][peer];
      sources[peer] = landing(q, peer);
    }
    own_.sum(out_.blob.slice(chunk(q).begin, chunk(q).end), sources);
  }

  Operation& op_;
  Buffer out_;
  Segments cut_;
  std::size_t turns_;  // chunks of one peer that may land before the first is summed
  Pieces own_;
  std::vector<std::vector<Request*>> pieces_;  // by chunk modulo turns_, by peer
  Blob landing_;
};

}  // namespace

Task<void> reduce_by_gathering(Operation& op, ConstBuffer in, Buffer out, Precision precision) {
  Gather gather(op, in, out, precision);
  co_await gather.run();
}

}  // namespace starling::comm
