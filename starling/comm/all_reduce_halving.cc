// Distance-doubling reduce-scatter and all-gather. As in recursive doubling, level l joins blocks
// of 2^l neighbours, but the buffer is halved each time: of every portion that a block has summed,
// the left block goes on with the first half and the right block with the second. Going back up,
// the halves are traded in return. Every addition is one of the fixed tree's.
//
// Which member of a block holds a portion: the portion's last bit says which child block, the
// remaining bits which member of it. Where the right child does not exist (k is not a power of two)
// the left one keeps both halves.
// Cost, k a power of two: 2 log2 k hops, 2 (k-1)/k B bytes each way. Otherwise members of a short
// block carry more.
#include <array>
#include <utility>
#include <vector>

#include "starling/comm/all_reduce.h"
#include "starling/comm/segments.h"

namespace starling::comm {
namespace {

class Halving {
 public:
  Halving(Operation& op, ConstBuffer in, Buffer out)
      : op_(op), in_(in), out_(out), landing_(op.scratch(in.blob.size)) {
    plan();
  }

  Task<void> run() {
    op_.arithmetic().copy(out_.blob, in_.blob);
    for (std::size_t level = 0; level < trades_.size(); ++level) {
      co_await reduce(level);
    }
    for (std::size_t level = trades_.size(); level-- > 0;) {
      co_await spread(level);
    }
  }

 private:
  static constexpr Slot kUpward = 1 << 24;

  std::size_t holder(std::size_t block, std::size_t level, std::size_t portion) const {
    while (level > 0) {
      --level;
      block = 2 * block + (portion & 1);
      block = (block << level) < op_.count() ? block : block - 1;
      portion >>= 1;
    }
    return block;
  }

  // Portion p of 2^level equal ones, cut where elements end.
  Segments::Range range(std::size_t portion, std::size_t level) const {
    const std::size_t n = in_.elements();
    const std::size_t size = size_of(in_.type);
    return {((portion * n) >> level) * size, (((portion + 1) * n) >> level) * size};
  }

  // One portion that this member holds before a level, and what it trades of it.
  struct Trade {
    std::size_t partner;
    std::size_t portion;
    Segments::Range keep;
    Segments::Range give;
  };
  // All trades, level by level. A portion of which nothing is traded stays whole: both its halves
  // are held at the next level.
  void plan() {
    std::vector<std::size_t> held = {0};
    for (std::size_t level = 0; (std::size_t{1} << level) < op_.count(); ++level) {
      const std::size_t block = op_.self() >> level;
      const std::size_t sibling = block ^ 1;
      const bool alone = (sibling << level) >= op_.count();
      const std::size_t side = block & 1;
      std::vector<std::size_t> kept;
      trades_.emplace_back();
      for (std::size_t p : held) {
        kept.push_back(2 * p + side);
        if (alone) {
          kept.push_back(2 * p + 1 - side);
          continue;
        }
        trades_.back().push_back({.partner = holder(sibling, level, p),
                                  .portion = p,
                                  .keep = range(2 * p + side, level + 1),
                                  .give = range(2 * p + 1 - side, level + 1)});
      }
      held = std::move(kept);
    }
  }

  static Slot slot(std::size_t level, std::size_t portion) {
    return static_cast<Slot>((std::size_t{1} << level) + portion);
  }

  Task<void> reduce(std::size_t level) {
    const std::vector<Trade>& all = trades_[level];
    std::vector<Request*> incoming;
    for (const Trade& t : all) {
      incoming.push_back(t.keep.empty() ? nullptr
                                        : &op_.receive(t.partner, slot(level, t.portion),
                                                       landing_.slice(t.keep.begin, t.keep.end),
                                                       "its partial sum"));
    }
    for (const Trade& t : all) {
      if (!t.give.empty()) {
        co_await op_.send(t.partner, slot(level, t.portion),
                          out_.blob.slice(t.give.begin, t.give.end));
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (incoming[i] != nullptr) {
        co_await *incoming[i];
        const Blob kept = out_.blob.slice(all[i].keep.begin, all[i].keep.end);
        const std::array<ConstBlob, 2> both = {kept,
                                               landing_.slice(all[i].keep.begin, all[i].keep.end)};
        op_.arithmetic().sum(in_.type, kept, both);
      }
    }
  }

  // The partner's half comes back into the place it was sent from. By then the sent bytes have
  // arrived, for the result depends on them.
  Task<void> spread(std::size_t level) {
    const std::vector<Trade>& all = trades_[level];
    std::vector<Request*> incoming;
    for (const Trade& t : all) {
      if (!t.give.empty()) {
        incoming.push_back(&op_.receive(t.partner, kUpward + slot(level, t.portion),
                                        out_.blob.slice(t.give.begin, t.give.end), "its result"));
      }
    }
    for (const Trade& t : all) {
      if (!t.keep.empty()) {
        co_await op_.send(t.partner, kUpward + slot(level, t.portion),
                          out_.blob.slice(t.keep.begin, t.keep.end));
      }
    }
    for (Request* request : incoming) {
      co_await *request;
    }
  }

  Operation& op_;
  ConstBuffer in_;
  Buffer out_;
  Blob landing_;
  std::vector<std::vector<Trade>> trades_;  // by level
};

}  // namespace

Task<void> reduce_by_halving(Operation& op, ConstBuffer in, Buffer out) {
  Halving halving(op, in, out);
  co_await halving.run();
}

}  // namespace starling::comm
