#include "starling/comm/all_reduce.h"

#include <algorithm>
#include <bit>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

// Up to this many members, and for segments of at least this many bytes, two hops with one message
// per pair beat log k hops.
constexpr std::size_t kFewMembers = 16;
constexpr std::size_t kLongSegment = 16384;

// More would not fit the message that gathers their names.
constexpr std::size_t kMostSharing = 128;

bool all_share(Engine& engine, std::span<const Rank> members) {
  if (!engine.options().in_shared_memory || members.size() > kMostSharing) {
    return false;
  }
  return std::all_of(members.begin(), members.end(), [&](Rank r) {
    return r.index() < engine.size() && engine.endpoint().shares_with(r);
  });
}

Operation::Greet greeting_of(AllReduce algorithm) {
  switch (algorithm) {
    case AllReduce::Doubling:
    case AllReduce::Gather:
      return Operation::Greet::BeforeBulk;
    case AllReduce::Shared:
      return Operation::Greet::Never;
    default:
      return Operation::Greet::Always;
  }
}

// Whether the algorithm takes the input as it is and rounds on the way.
bool rounds_itself(AllReduce algorithm) {
  return algorithm == AllReduce::Direct || algorithm == AllReduce::Gather ||
         algorithm == AllReduce::Shared;
}

ConstBuffer rounded(Operation& op, ConstBuffer in) {
  const Blob copy = op.scratch(in.blob.size);
  op.arithmetic().through_bf16(in.type, copy, in.blob);
  return {in.type, copy};
}

Task<void> body(Operation& op, ConstBuffer in, Buffer out, AllReduce algorithm,
                Precision precision) {
  require_buffers("all-reduce", in, out);
  if (op.count() == 1) {
    precision == Precision::Full ? op.arithmetic().copy(out.blob, in.blob)
                                 : op.arithmetic().through_bf16(in.type, out.blob, in.blob);
    co_return;
  }
  if (precision != Precision::Full && !rounds_itself(algorithm)) {
    in = rounded(op, in);
  }
  switch (algorithm) {
    case AllReduce::Auto:
      check(false, "the algorithm has been chosen by now");
      break;
    case AllReduce::Doubling:
      co_await reduce_by_doubling(op, in, out);
      break;
    case AllReduce::Direct:
      co_await reduce_directly(op, in, out, precision);
      break;
    case AllReduce::Halving:
      co_await reduce_by_halving(op, in, out);
      break;
    case AllReduce::Shared:
      co_await reduce_in_shared_memory(op, in, out, precision);
      break;
    case AllReduce::Ring:
      co_await reduce_on_ring(op, in, out);
      break;
    case AllReduce::Gather:
      co_await reduce_by_gathering(op, in, out, precision);
      break;
  }
}

}  // namespace

std::string_view name_of(AllReduce algorithm) {
  switch (algorithm) {
    case AllReduce::Auto:
      return "auto";
    case AllReduce::Doubling:
      return "doubling";
    case AllReduce::Direct:
      return "direct";
    case AllReduce::Halving:
      return "halving";
    case AllReduce::Shared:
      return "shared";
    case AllReduce::Ring:
      return "ring";
    case AllReduce::Gather:
      return "gather";
  }
  return "unknown";
}

// Ranks of a node are consecutive: then its members are the first blocks to be joined. (Where they
// are not, the result is the same and only the choice is a worse one.)
Nodes nodes_of(const Endpoint& endpoint, std::span<const Rank> members) {
  const auto node = [&](std::size_t i) { return endpoint.node_of(members[i]); };
  bool several = false;
  bool crowded = false;
  for (std::size_t i = 1; i < members.size(); ++i) {
    several = several || node(i) != node(0);
    crowded = crowded || node(i) == node(i - 1);
  }
  return several && crowded ? Nodes::Shared : Nodes::Apart;
}

AllReduce choose(std::size_t members, std::size_t bytes, std::size_t shrink, Nodes nodes) {
  if (bytes > kSmall && nodes == Nodes::Shared && shrink == 1) {
    return AllReduce::Halving;
  }
  if (shrink > 1 && members <= 1 + shrink) {
    return AllReduce::Gather;
  }
  if (bytes <= kSmall) {
    return AllReduce::Doubling;
  }
  return members <= kFewMembers || bytes / members >= kLongSegment ? AllReduce::Direct
                                                                   : AllReduce::Halving;
}

Task<Report> all_reduce(Engine& engine, Call call, ConstBuffer in, Buffer out, AllReduce algorithm,
                        Precision precision) {
  if (algorithm == AllReduce::Auto) {
    algorithm = all_share(engine, call.members) && in.blob.size > kSmall
                    ? AllReduce::Shared
                    : choose(call.members.size(), in.blob.size, shrink(in.type, precision),
                             nodes_of(engine.endpoint(), call.members));
    if (algorithm == AllReduce::Direct && engine.options().few_messages &&
        call.members.size() > kFewMembers && std::has_single_bit(call.members.size())) {
      algorithm = AllReduce::Halving;
    }
  }
  Operation op(engine, call,
               {.elements = in.elements(),
                .kind = Kind::AllReduce,
                .type = in.type,
                .algorithm = static_cast<std::uint8_t>(algorithm),
                .precision = precision},
               Operation::Reach::Group, greeting_of(algorithm));
  co_return co_await op.run(body(op, in, out, algorithm, precision));
}

}  // namespace starling::comm
