#include "starling/comm/barrier.h"

namespace starling::comm {
namespace {

// In round i everyone tells the member 2^i behind it in the circle, and so hears, directly or
// through others, of all 2^(i+1) - 1 before it.
Task<void> disseminate(Operation& op) {
  Slot round = 0;
  for (std::size_t distance = 1; distance < op.count(); distance *= 2, ++round) {
    Request& word = op.receive(op.before(distance), round, {}, "its arrival");
    co_await op.send(op.after(distance), round, {});
    co_await word;
  }
}

}  // namespace

Task<Report> barrier(Engine& engine, Call call) {
  Operation op(engine, call, {.kind = Kind::Barrier});
  co_return co_await op.run(disseminate(op));
}

}  // namespace starling::comm
