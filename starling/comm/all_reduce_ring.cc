// The ring, as other systems have it: segments travel round, first being summed, then being copied.
// It adds in the order of the ring, not of the fixed tree; it is here to be compared with.
// Cost: 2 (k-1) hops of B/k bytes, one after the other.
#include <array>

#include "starling/comm/all_reduce.h"
#include "starling/comm/segments.h"

namespace starling::comm {

Task<void> reduce_on_ring(Operation& op, ConstBuffer in, Buffer out) {
  const std::size_t k = op.count();
  const Segments cut(in.blob.size, k, 0);
  const std::size_t next = op.after(1);
  const std::size_t previous = op.before(1);
  const std::array<Blob, 2> landing = {op.scratch(cut.chunk_bytes()),
                                       op.scratch(cut.chunk_bytes())};
  // In step s this worker passes on segment self - s and gets segment self - s - 1.
  const auto segment = [&](std::size_t s) { return cut.segment(op.before(s % k)); };
  const auto post = [&](std::size_t s) -> Request* {
    const Segments::Range r = segment(s + 1);
    if (r.empty()) {
      return nullptr;
    }
    const Blob into =
        s + 1 < k ? landing[s % 2].slice(0, r.size()) : out.blob.slice(r.begin, r.end);
    return &op.receive(previous, static_cast<Slot>(s), into, "a segment");
  };
  const std::size_t steps = 2 * (k - 1);
  std::array<Request*, 2> incoming = {post(0), nullptr};
  for (std::size_t s = 0; s < steps; ++s) {
    if (s + 1 < steps) {
      incoming[(s + 1) % 2] = post(s + 1);
    }
    if (const Segments::Range give = segment(s); !give.empty()) {
      const ConstBlob whole = s == 0 ? in.blob : out.blob;
      co_await op.send(next, static_cast<Slot>(s), whole.slice(give.begin, give.end));
    }
    const Segments::Range take = segment(s + 1);
    if (take.empty()) {
      continue;
    }
    co_await *incoming[s % 2];
    if (s + 1 < k) {
      const std::array<ConstBlob, 2> both = {in.blob.slice(take.begin, take.end),
                                             landing[s % 2].slice(0, take.size())};
      op.arithmetic().sum(in.type, out.blob.slice(take.begin, take.end), both);
    }
  }
}

}  // namespace starling::comm
