#include "starling/comm/broadcast.h"

#include <vector>

#include "starling/base/error.h"
#include "starling/comm/segments.h"

namespace starling::comm {
namespace {

// Members are renumbered from the root: v = (position - root) mod k. Member v hears from v with its
// highest bit cleared, and then tells v + 2^i for all 2^i above v.
Task<void> tree(Operation& op, std::size_t root, Blob out) {
  const std::size_t k = op.count();
  const std::size_t v = (op.self() + k - root) % k;
  std::size_t reach = 1;
  while (reach <= v) {
    reach *= 2;
  }
  if (v != 0) {
    co_await op.receive((v - reach / 2 + root) % k, 0, out, "the broadcast");
  }
  for (; v + reach < k; reach *= 2) {
    co_await op.send((v + reach + root) % k, 0, out);
  }
}

// Segment j goes from the root to member j and from there to all others. The root has a segment
// too, which it sends to everyone itself.
class Scatter {
 public:
  Scatter(Operation& op, std::size_t root, Blob out)
      : op_(op), root_(root), out_(out), cut_(out.size, op.count(), op.engine().options().chunk) {}

  Task<void> run() { return op_.self() == root_ ? give() : take(); }

 private:
  ConstBlob piece(std::size_t segment, std::size_t q) const { return blob(segment, q); }
  Blob blob(std::size_t segment, std::size_t q) const {
    const Segments::Range r = cut_.chunk(segment, q);
    return out_.slice(r.begin, r.end);
  }

  Task<void> give() {
    for (std::size_t q = 0; q < cut_.chunks(); ++q) {
      for (std::size_t d = 1; d < op_.count(); ++d) {
        const std::size_t peer = op_.after(d);
        if (!cut_.chunk(peer, q).empty()) {
          co_await op_.send(peer, static_cast<Slot>(q), piece(peer, q));
        }
      }
      for (std::size_t d = 1; d < op_.count(); ++d) {
        if (!cut_.chunk(root_, q).empty()) {
          co_await op_.send(op_.after(d), kPassed + static_cast<Slot>(q), piece(root_, q));
        }
      }
    }
  }

  void post(std::size_t q) {
    for (std::size_t j = 0; j < op_.count(); ++j) {
      if (!cut_.chunk(j, q).empty()) {
        const bool own = j == op_.self();
        awaited_[q].push_back(&op_.receive(own ? root_ : j, (own ? 0 : kPassed) + static_cast<Slot>(q),
                                           blob(j, q), "a piece of the broadcast"));
        if (own) {
          std::swap(awaited_[q].front(), awaited_[q].back());
        }
      }
    }
  }

  Task<void> take() {
    awaited_.resize(cut_.chunks());
    post(0);
    for (std::size_t q = 0; q < cut_.chunks(); ++q) {
      if (q + 1 < cut_.chunks()) {
        post(q + 1);
      }
      const bool own = !cut_.chunk(op_.self(), q).empty();
      if (own) {
        co_await *awaited_[q].front();
        for (std::size_t d = 1; d < op_.count(); ++d) {
          if (const std::size_t peer = op_.after(d); peer != root_) {
            co_await op_.send(peer, kPassed + static_cast<Slot>(q), piece(op_.self(), q));
          }
        }
      }
      for (std::size_t i = own ? 1 : 0; i < awaited_[q].size(); ++i) {
        co_await *awaited_[q][i];
      }
      co_await op_.engine().yield();
    }
  }

  static constexpr Slot kPassed = 1 << 24;
  Operation& op_;
  std::size_t root_;
  Blob out_;
  Segments cut_;
  std::vector<std::vector<Request*>> awaited_;  // by chunk, the own segment's first
};

Task<void> body(Operation& op, Rank root, ConstBuffer in, Buffer out) {
  require_buffers("broadcast", in, out);
  const std::size_t source = op.position_of(root);
  if (op.self() == source) {
    op.arithmetic().copy(out.blob, in.blob);
  }
  if (out.blob.size <= kSmall || op.count() == 2) {
    co_await tree(op, source, out.blob);
  } else {
    Scatter scatter(op, source, out.blob);
    co_await scatter.run();
  }
}

}  // namespace

Task<Report> broadcast(Engine& engine, Call call, Rank root, ConstBuffer in, Buffer out) {
  Operation op(engine, call,
               {.elements = out.elements(), .kind = Kind::Broadcast, .type = out.type});
  co_return co_await op.run(body(op, root, in, out));
}

}  // namespace starling::comm
