// Direct reduce-scatter and all-gather. Member j owns segment j: everyone sends it its piece of
// that segment, it sums the k pieces in one pass, and sends the result to everyone. Chunk by chunk:
// while chunk q is summed, the next four are on their way. Pieces may travel as bf16, results do
// not. Cost: 2 hops; every member sends and receives 2 (k-1)/k B bytes, with bf16 a quarter less
// (float); extra memory: 5 chunks per peer.
#include <vector>

#include "starling/comm/all_reduce.h"
#include "starling/comm/pieces.h"
#include "starling/comm/segments.h"

namespace starling::comm {
namespace {

class Direct {
 public:
  Direct(Operation& op, ConstBuffer in, Buffer out, Precision precision)
      : op_(op),
        out_(out),
        cut_(in.blob.size, op.count(), op.engine().options().chunk),
        turns_(std::min(kAhead + 1, cut_.chunks())),
        own_(op, in, precision,
             {.turns = turns_, .places = op.count(), .longest = longest_piece()}),
        pieces_(turns_, std::vector<Request*>(op.count())),
        results_(cut_.chunks(), std::vector<Request*>(op.count())),
        landing_(op.scratch(turns_ * op.count() * landing_bytes())) {}

  Task<void> run() {
    std::size_t sent = 0;
    std::size_t gathered = 0;
    for (std::size_t q = 0; q < cut_.chunks(); ++q) {
      for (; sent < std::min(q + turns_, cut_.chunks()); ++sent) {
        post(sent);
        co_await scatter(sent);
      }
      co_await reduce(q);
      for (; gathered + kAhead <= q; ++gathered) {
        co_await gather(gathered);
      }
      co_await op_.engine().yield();
    }
    for (; gathered < cut_.chunks(); ++gathered) {
      co_await gather(gathered);
    }
  }

 private:
  static constexpr Slot kResult = 1 << 24;
  // Chunks that are on their way while one is summed: enough that the line between two hosts never
  // falls idle while an offer, behind other data, waits for its answer.
  static constexpr std::size_t kAhead = 4;

  std::size_t longest_piece() const {
    std::size_t longest = 0;
    for (std::size_t j = 0; j < op_.count(); ++j) {
      longest = std::max(longest, cut_.chunk(j, 0).size());
    }
    return longest;
  }
  std::size_t landing_bytes() const { return own_.on_wire(cut_.chunk(op_.self(), 0).size()); }
  // Where chunk q of the own segment lands when it comes from `peer`.
  Blob landing(std::size_t q, std::size_t peer) const {
    const std::size_t begin = ((q % turns_) * op_.count() + peer) * landing_bytes();
    return landing_.slice(begin, begin + own_.on_wire(cut_.chunk(op_.self(), q).size()));
  }

  void post(std::size_t q) {
    for (std::size_t d = 1; d < op_.count(); ++d) {
      const std::size_t peer = op_.before(d);
      const Slot slot = static_cast<Slot>(q);
      if (!cut_.chunk(op_.self(), q).empty()) {
        pieces_[q % turns_][peer] = &op_.receive(peer, slot, landing(q, peer), "its contribution");
      }
      if (const auto range = cut_.chunk(peer, q); !range.empty()) {
        results_[q][peer] = &op_.receive(peer, kResult + slot,
                                         out_.blob.slice(range.begin, range.end), "its result");
      }
    }
  }

  Task<void> scatter(std::size_t q) {
    for (std::size_t d = 1; d < op_.count(); ++d) {
      const std::size_t peer = op_.after(d);
      if (const auto range = cut_.chunk(peer, q); !range.empty()) {
        Loan* loan = own_.loan(q, peer);
        co_await op_.returned(peer, loan);
        const ConstBlob piece = own_.piece(q, peer, range);
        co_await op_.send(peer, static_cast<Slot>(q), piece, loan);
      }
    }
  }

  Task<void> reduce(std::size_t q) {
    const Segments::Range range = cut_.chunk(op_.self(), q);
    if (range.empty()) {
      co_return;
    }
    std::vector<ConstBlob> sources(op_.count());
    sources[op_.self()] = own_.piece(q, op_.self(), range);
    for (std::size_t d = 1; d < op_.count(); ++d) {
      const std::size_t peer = op_.before(d);
      co_await *pieces_[q % turns_][peer];
      sources[peer] = landing(q, peer);
    }
    const Blob result = out_.blob.slice(range.begin, range.end);
    own_.sum(result, sources);
    for (std::size_t d = 1; d < op_.count(); ++d) {
      co_await op_.send(op_.after(d), kResult + static_cast<Slot>(q), result);
    }
  }

  Task<void> gather(std::size_t q) {
    for (std::size_t d = 1; d < op_.count(); ++d) {
      if (Request* result = results_[q][op_.before(d)]; result != nullptr) {
        co_await *result;
      }
    }
  }

  Operation& op_;
  Buffer out_;
  Segments cut_;
  std::size_t turns_;  // chunks of one peer that may land before the first is summed
  Pieces own_;         // the places are the members that they go to
  std::vector<std::vector<Request*>> pieces_;   // by chunk modulo turns_, by peer
  std::vector<std::vector<Request*>> results_;  // by chunk, by peer
  Blob landing_;
};

}  // namespace

Task<void> reduce_directly(Operation& op, ConstBuffer in, Buffer out, Precision precision) {
  Direct direct(op, in, out, precision);
  co_await direct.run();
}

}  // namespace starling::comm
