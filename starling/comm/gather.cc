#include "starling/comm/gather.h"

#include <algorithm>
#include <cstring>

#include "starling/base/error.h"

namespace starling::comm {

// After round r everyone knows the records of the 2^(r+1) members from itself on.
Task<void> gather_records(Operation& op, Slot slot, std::span<std::byte> records) {
  const std::size_t k = op.count();
  check(records.size() % k == 0, "{} bytes of records for {} members", records.size(), k);
  const std::size_t size = records.size() / k;
  const std::span<std::byte> known = op.memory(records.size());  // sends may outlive this body
  std::memcpy(known.data(), records.data() + op.self() * size, size);
  for (std::size_t have = 1; have < k; have *= 2, ++slot) {
    const std::size_t more = std::min(have, k - have) * size;
    Request& theirs =
        op.receive(op.after(have), slot, {known.data() + have * size, more}, "its record");
    co_await op.send(op.before(have), slot, {known.data(), more});
    co_await theirs;
  }
  for (std::size_t i = 0; i < k; ++i) {
    std::memcpy(records.data() + op.after(i) * size, known.data() + i * size, size);
  }
}

Task<Report> gather(Engine& engine, Call call, std::span<std::byte> records) {
  Operation op(engine, call, {.elements = records.size(), .kind = Kind::Gather},
               Operation::Reach::Group, Operation::Greet::Never);
  co_return co_await op.run(gather_records(op, 0, records));
}

}  // namespace starling::comm
