#include "starling/comm/all_reduce.h"

#include <algorithm>

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
  return algorithm == AllReduce::Doubling ? Operation::Greet::BeforeBulk
         : algorithm == AllReduce::Shared ? Operation::Greet::Never
                                          : Operation::Greet::Always;
}

Task<void> body(Operation& op, ConstBuffer in, Buffer out, AllReduce algorithm) {
  require_buffers("all-reduce", in, out);
  if (op.count() == 1) {
    op.arithmetic().copy(out.blob, in.blob);
    co_return;
  }
  switch (algorithm) {
    case AllReduce::Auto:
      check(false, "the algorithm has been chosen by now");
      break;
    case AllReduce::Doubling:
      co_await reduce_by_doubling(op, in, out);
      break;
    case AllReduce::Direct:
      co_await reduce_directly(op, in, out);
      break;
    case AllReduce::Halving:
      co_await reduce_by_halving(op, in, out);
      break;
    case AllReduce::Shared:
      co_await reduce_in_shared_memory(op, in, out);
      break;
    case AllReduce::Ring:
      co_await reduce_on_ring(op, in, out);
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
  }
  return "unknown";
}

AllReduce choose(std::size_t members, std::size_t bytes) {
  if (bytes <= kSmall) {
    return AllReduce::Doubling;
  }
  return members <= kFewMembers || bytes / members >= kLongSegment ? AllReduce::Direct
                                                                   : AllReduce::Halving;
}

Task<Report> all_reduce(Engine& engine, Call call, ConstBuffer in, Buffer out,
                        AllReduce algorithm) {
  if (algorithm == AllReduce::Auto) {
    algorithm = all_share(engine, call.members) && in.blob.size > kSmall
                    ? AllReduce::Shared
                    : choose(call.members.size(), in.blob.size);
  }
  Operation op(engine, call,
               {.elements = in.elements(),
                .kind = Kind::AllReduce,
                .type = in.type,
                .algorithm = static_cast<std::uint8_t>(algorithm)},
               Operation::Reach::Group, greeting_of(algorithm));
  co_return co_await op.run(body(op, in, out, algorithm));
}

}  // namespace starling::comm
