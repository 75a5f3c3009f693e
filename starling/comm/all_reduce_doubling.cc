// Recursive doubling. Before level l a member holds the sum of its block of 2^l neighbours in rank
// order; it trades with the sibling block and then holds the sum of both: the fixed tree, level by
// level. With a number of members that is not a power of two the last block of a level is short:
// each of its members serves several of the sibling's, or it has no sibling and passes.
// Cost: ceil(log2 k) hops of B bytes.
#include <array>
#include <vector>

#include "starling/comm/all_reduce.h"

namespace starling::comm {
namespace {

struct Block {
  std::size_t begin = 0;
  std::size_t size = 0;
};

Block block_at(std::size_t index, std::size_t width, std::size_t k) {
  const std::size_t begin = index * width;
  return {begin, begin < k ? std::min(width, k - begin) : 0};
}

}  // namespace

Task<void> reduce_by_doubling(Operation& op, ConstBuffer in, Buffer out) {
  const std::size_t k = op.count();
  op.arithmetic().copy(out.blob, in.blob);
  const Blob theirs = op.scratch(in.blob.size);
  Blob mine = op.scratch(in.blob.size);  // stays as it is while it is being sent
  Slot level = 0;
  for (std::size_t width = 1; width < k; width *= 2, ++level) {
    const std::size_t index = op.self() / width;
    const Block own = block_at(index, width, k);
    const Block sibling = block_at(index ^ 1, width, k);
    if (sibling.size == 0) {
      continue;
    }
    const std::size_t place = op.self() - own.begin;
    Request& incoming =
        op.receive(sibling.begin + place % sibling.size, level, theirs, "its partial sum");
    op.arithmetic().copy(mine, out.blob);
    for (std::size_t other = place; other < sibling.size; other += own.size) {
      co_await op.send(sibling.begin + other, level, mine);
    }
    co_await incoming;
    const std::array<ConstBlob, 2> both = {out.blob, theirs};
    op.arithmetic().sum(in.type, out.blob, both);
    // The next level overwrites `mine`; a bulk send of this one may still be under way.
    if (in.blob.size > kSmall) {
      mine = op.scratch(in.blob.size);
    }
  }
}

}  // namespace starling::comm
