// The sum of all members' buffers, on all of them; inside any group of workers, any number of
// groups at once. Workers of different groups need not know of each other.
//
// The sum is one fixed binary tree over the members in rank order (kernels/sum.h), element by
// element: the same bits whatever the algorithm, the chunk length and the transport. Only the ring,
// kept as the rival, adds up in another order.
//
// With Precision::Bf16 it is the sum of what everyone's buffer unpacks to when it was packed to
// bf16 (kernels/wire.h), the own one too: each contribution is rounded once, the sum is made in the
// type of the buffers and travels as it is. Bits as above: unpack, then sum. What it costs, for
// buffers of S bytes that take S/f on the wire (f = 2 for float, 4 for double), k members:
//   gather   (k-1) S/f              everyone sends everyone all it has and all sum
//   direct   (k-1)/k (S/f + S)      the owner of a segment sums it
// so gather, which also saves a hop, sends no more than direct as long as k <= 1 + f. The other
// algorithms run on a rounded copy of the input and save no bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "starling/base/task.h"
#include "starling/comm/buffer.h"
#include "starling/comm/engine.h"
#include "starling/comm/operation.h"
#include "starling/comm/report.h"

namespace starling::comm {

enum class AllReduce : std::uint8_t {
  Auto,      // by size and number of members; see choose()
  Doubling,  // all_reduce_doubling.cc: fewest hops, for small buffers
  Direct,    // all_reduce_direct.cc: every member owns a segment; two hops, for large ones
  Halving,   // all_reduce_halving.cc: as many bytes in log k hops, for many members
  Shared,    // all_reduce_shared.cc: in place, where all members map each other's memory
  Ring,      // all_reduce_ring.cc: the rival
  Gather,    // all_reduce_gather.cc: everyone sums everything; one hop
};
std::string_view name_of(AllReduce algorithm);

// Whether nodes hold several members each and there are several nodes. Then what leaves a node
// should have been summed in it.
enum class Nodes : std::uint8_t { Apart, Shared };
Nodes nodes_of(const Endpoint& endpoint, std::span<const Rank> members);

// What Auto stands for with `members` workers and `bytes` bytes, of which contributions take
// `shrink` times fewer on the wire (arithmetic.h).
AllReduce choose(std::size_t members, std::size_t bytes, std::size_t shrink = 1,
                 Nodes nodes = Nodes::Apart);

// `out` is the sum; the reader divides. `in` and `out` do not overlap.
Task<Report> all_reduce(Engine& engine, Call call, ConstBuffer in, Buffer out,
                        AllReduce algorithm = AllReduce::Auto,
                        Precision precision = Precision::Full);

// The bodies, one file each.
Task<void> reduce_by_doubling(Operation& op, ConstBuffer in, Buffer out);
Task<void> reduce_directly(Operation& op, ConstBuffer in, Buffer out, Precision precision);
Task<void> reduce_by_gathering(Operation& op, ConstBuffer in, Buffer out, Precision precision);
Task<void> reduce_by_halving(Operation& op, ConstBuffer in, Buffer out);
Task<void> reduce_in_shared_memory(Operation& op, ConstBuffer in, Buffer out, Precision precision);
Task<void> reduce_on_ring(Operation& op, ConstBuffer in, Buffer out);

}  // namespace starling::comm
