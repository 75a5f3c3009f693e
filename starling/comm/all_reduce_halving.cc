// Distance-doubling reduce-scatter and all-gather. As in recursive doubling, level l joins blocks
// of 2^l neighbours, but the buffer is halved each time (halving_plan.h). Going back up, the halves
// are traded in return. Every addition is one of the fixed tree's. Cost, k a power of two: 2 log2 k
// hops, 2 (k-1)/k B bytes each way. Otherwise members of a short block carry more.
#include <array>
#include <vector>

#include "starling/comm/all_reduce.h"
#include "starling/comm/halving_plan.h"
#include "starling/comm/segments.h"

namespace starling::comm {
namespace {

class Halving {
 public:
  Halving(Operation& op, ConstBuffer in, Buffer out)
      : op_(op),
        in_(in),
        out_(out),
        landing_(op.scratch(in.blob.size)),
        plan_(halving_plan(op.count(), op.self())) {}

  Task<void> run() {
    op_.arithmetic().copy(out_.blob, in_.blob);
    for (std::size_t level = 0; level < plan_.size(); ++level) {
      co_await reduce(level);
    }
    for (std::size_t level = plan_.size(); level-- > 0;) {
      co_await spread(level);
    }
  }

 private:
  static constexpr Slot kUpward = 1 << 24;

  // Half h of the portions of `level`, cut where elements end.
  Segments::Range range(std::size_t half, std::size_t level) const {
    const std::size_t n = in_.elements();
    const std::size_t size = size_of(in_.type);
    return {((half * n) >> (level + 1)) * size, (((half + 1) * n) >> (level + 1)) * size};
  }
  static Blob part(Blob whole, Segments::Range r) { return whole.slice(r.begin, r.end); }

  static Slot slot(std::size_t level, std::size_t portion) {
    return static_cast<Slot>((std::size_t{1} << level) + portion);
  }

  Task<void> reduce(std::size_t level) {
    std::vector<Request*> incoming;
    for (const Trade& t : plan_[level]) {
      const Blob into = part(landing_, range(t.keep, level));
      incoming.push_back(into.size == 0 ? nullptr
                                        : &op_.receive(t.partner, slot(level, t.portion), into,
                                                       "its partial sum"));
    }
    for (const Trade& t : plan_[level]) {
      if (const Blob data = part(out_.blob, range(t.give, level)); data.size > 0) {
        co_await op_.send(t.partner, slot(level, t.portion), data);
      }
    }
    for (std::size_t i = 0; i < incoming.size(); ++i) {
      if (incoming[i] != nullptr) {
        co_await *incoming[i];
        const Segments::Range kept = range(plan_[level][i].keep, level);
        const std::array<ConstBlob, 2> both = {part(out_.blob, kept), part(landing_, kept)};
        op_.arithmetic().sum(in_.type, part(out_.blob, kept), both);
      }
    }
  }

  // The partner's half comes back into the place it was sent from. By then the sent bytes have
  // arrived, for the result depends on them.
  Task<void> spread(std::size_t level) {
    std::vector<Request*> incoming;
    for (const Trade& t : plan_[level]) {
      if (const Blob into = part(out_.blob, range(t.give, level)); into.size > 0) {
        incoming.push_back(
            &op_.receive(t.partner, kUpward + slot(level, t.portion), into, "its result"));
      }
    }
    for (const Trade& t : plan_[level]) {
      if (const Blob data = part(out_.blob, range(t.keep, level)); data.size > 0) {
        co_await op_.send(t.partner, kUpward + slot(level, t.portion), data);
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
  std::vector<std::vector<Trade>> plan_;  // by level
};

}  // namespace

Task<void> reduce_by_halving(Operation& op, ConstBuffer in, Buffer out) {
  Halving halving(op, in, out);
  co_await halving.run();
}

}  // namespace starling::comm
