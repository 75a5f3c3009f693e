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

// Every member but the root owns a segment: the root sends it there, and the member passes it on to
// the others. Members are renumbered from the root, which is 0; member v owns segment v - 1.
class Scatter {
 public:
  Scatter(Operation& op, std::size_t root, Blob out)
      : op_(op),
        root_(root),
        self_((op.self() + op.count() - root) % op.count()),
        out_(out),
        cut_(out.size, op.count() - 1, op.engine().options().chunk),
        pieces_(cut_.chunks()) {}

  Task<void> run() { return self_ == 0 ? give() : take(); }

 private:
  static constexpr Slot kPassed = 1 << 24;

  std::size_t position(std::size_t v) const { return (v + root_) % op_.count(); }
  Blob piece(std::size_t owner, std::size_t q) const {
    const Segments::Range r = cut_.chunk(owner - 1, q);
    return out_.slice(r.begin, r.end);
  }

  Task<void> give() {
    for (std::size_t q = 0; q < cut_.chunks(); ++q) {
      for (std::size_t v = 1; v < op_.count(); ++v) {
        if (const Blob data = piece(v, q); data.size > 0) {
          co_await op_.send(position(v), static_cast<Slot>(q), data);
        }
      }
    }
  }

  void post(std::size_t q) {
    pieces_[q].assign(op_.count(), nullptr);
    for (std::size_t v = 1; v < op_.count(); ++v) {
      if (const Blob into = piece(v, q); into.size > 0) {
        const bool own = v == self_;
        pieces_[q][v] =
            &op_.receive(position(own ? 0 : v), (own ? 0 : kPassed) + static_cast<Slot>(q), into,
                         "a piece of the broadcast");
      }
    }
  }

  Task<void> take() {
    post(0);
    for (std::size_t q = 0; q < cut_.chunks(); ++q) {
      if (q + 1 < cut_.chunks()) {
        post(q + 1);
      }
      if (pieces_[q][self_] != nullptr) {
        co_await *pieces_[q][self_];
        co_await pass_on(q);
      }
      for (std::size_t v = 1; v < op_.count(); ++v) {
        if (v != self_ && pieces_[q][v] != nullptr) {
          co_await *pieces_[q][v];
        }
      }
      co_await op_.engine().yield();
    }
  }

  Task<void> pass_on(std::size_t q) {
    for (std::size_t d = 1; d < op_.count(); ++d) {
      if (const std::size_t v = (self_ + d) % op_.count(); v != 0) {
        co_await op_.send(position(v), kPassed + static_cast<Slot>(q), piece(self_, q));
      }
    }
  }

  Operation& op_;
  std::size_t root_;
  std::size_t self_;
  Blob out_;
  Segments cut_;
  std::vector<std::vector<Request*>> pieces_;  // by chunk, by owner
};

Task<void> body(Operation& op, Rank root, ConstBuffer in, Buffer out) {
  require_buffers("broadcast", in, out);
  require(op.has(root), "broadcast: the root, worker {}, is not in the group", root);
  const std::size_t source = op.position_of(root);
  if (op.self() == source) {
    op.arithmetic().copy(out.blob, in.blob);
  }
  if (out.blob.size <= kSmall || op.count() <= 2) {
    co_await tree(op, source, out.blob);
  } else {
    Scatter scatter(op, source, out.blob);
    co_await scatter.run();
  }
}

}  // namespace

Task<Report> broadcast(Engine& engine, Call call, Rank root, ConstBuffer in, Buffer out) {
  Operation op(engine, call,
               {.elements = out.elements(),
                .members = (root.value + std::uint64_t{1}) * 0x9E3779B97F4A7C15u,
                .kind = Kind::Broadcast,
                .type = out.type});
  co_return co_await op.run(body(op, root, in, out));
}

}  // namespace starling::comm
