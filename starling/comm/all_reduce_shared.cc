// All-reduce between workers that map each other's memory. Member j owns segment j: it reads that
// segment of all k inputs where they lie, sums piece by piece in the cache, and writes the sum
// straight into all k outputs, past the caches. Cost: every byte of input is read once and every
// byte of output written once, by somebody; 2 log2 k small messages per member and block.
//
// Buffers outside the pool are staged through it, block by block and in turn through two stages:
// while block b is summed, block b + 1 is copied in and b - 1 copied out; a block is short enough
// to stay in the caches. If all buffers are in the pool there is one block and no copy. What has to
// be rounded is always staged, and rounded on its way in: that takes no further pass over memory.
//
//   gather the names of everyone's memory                     (nobody starts before all are in)
//   for each block:   sum own segment into all outputs; barrier
//
// A piece of all members together is as long as the engine's chunk, a block of all of them eight
// chunks, so that the stages fit the last-level cache however many members there are. Memory is
// held under leases for one piece at a time. Who fails withdraws its names and waits until nobody
// holds them: after that nobody can read its input or write its output any more.
#include <bit>
#include <optional>
#include <span>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/gather.h"
#include "starling/comm/segments.h"

namespace starling::comm {
namespace {

// How long a failed operation waits for those who hold its memory. They hold it for less than a
// millisecond, unless they are stopped: then the memory is replaced under their hands.
constexpr Duration kPatience = std::chrono::seconds(5);

// A pause that cancellation does not cut short.
class Pause final : private Completion {
 public:
  Pause(Engine& engine, Duration time) : engine_(engine), time_(time) {}
  bool await_ready() const { return engine_.closed(); }
  void await_suspend(std::coroutine_handle<> body) {
    body_ = body;
    engine_.endpoint().timer(engine_.now() + time_, *this);
  }
  void await_resume() const {}

 private:
  void finish(Finish, std::size_t) override { engine_.make_ready(body_); }
  Engine& engine_;
  Duration time_;
  std::coroutine_handle<> body_;
};

// What a member tells the others about its memory.
struct Names {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::uint64_t staged = 0;
};

class Shared {
 public:
  Shared(Operation& op, ConstBuffer in, Buffer out, Precision precision)
      : op_(op),
        endpoint_(op.engine().endpoint()),
        in_(in),
        out_(out),
        precision_(precision),
        names_(op.count()) {}

  Task<void> run() {
    publish();
    copy_in(0);
    co_await gather_names();
    choose_blocks();
    for (std::size_t b = 0; b < blocks_; ++b) {
      copy_in(b + 1);
      co_await sum_own_segment(b);
      co_await barrier();
      copy_out(b);
    }
  }

  // Afterwards nobody sees our memory any more.
  Task<void> recall() {
    const Names& own = names_[op_.self()];
    const Time patience = op_.engine().now() + kPatience;
    for (const std::uint64_t name : {own.in, own.out}) {
      if (name != 0) {
        endpoint_.withdraw(name);
      }
    }
    for (const std::uint64_t name : {own.in, own.out}) {
      while (name != 0 && endpoint_.leases(name) != 0 && !op_.engine().closed()) {
        if (op_.engine().now() > patience) {
          endpoint_.abandon(name);
          break;
        }
        co_await Pause(op_.engine(), std::chrono::milliseconds(1));
      }
    }
    if (stage_.data != nullptr) {
      endpoint_.unshare(stage_);
    }
  }

 private:
  std::size_t bytes() const { return in_.blob.size; }
  // A whole number of lines, and of elements.
  std::size_t longest_block() const {
    const std::size_t chunk = op_.engine().options().chunk;
    const std::size_t share = std::max(chunk, 8 * chunk / op_.count()) / 64 * 64;
    return chunk == 0 ? bytes() : std::min(bytes(), std::max<std::size_t>(share, 64));
  }
  bool staged(std::size_t member) const { return names_[member].staged != 0; }
  Segments::Range block(std::size_t b) const {
    return {std::min(b * block_bytes_, bytes()), std::min((b + 1) * block_bytes_, bytes())};
  }
  // Where block b of a member's memory begins, in what it has named.
  std::size_t begin_of(std::size_t member, std::size_t b) const {
    return staged(member) ? (b % 2) * block_bytes_ : block(b).begin;
  }

  void publish() {
    Names& own = names_[op_.self()];
    const auto in = precision_ == Precision::Full ? endpoint_.publish(in_.blob) : std::nullopt;
    const auto out = in ? endpoint_.publish(out_.blob) : std::nullopt;
    if (in && out) {
      own = {.in = *in, .out = *out, .staged = 0};
      return;
    }
    if (in) {
      endpoint_.withdraw(*in);
    }
    // Two stages for what goes in, two for what comes out.
    block_bytes_ = longest_block();
    stage_ = endpoint_.share(4 * block_bytes_);
    stage_in_ = stage_.slice(0, 2 * block_bytes_);
    stage_out_ = stage_.slice(2 * block_bytes_, 4 * block_bytes_);
    own.staged = 1;
    own.in = endpoint_.publish(stage_in_).value_or(0);
    own.out = endpoint_.publish(stage_out_).value_or(0);
    require(own.in != 0 && own.out != 0, "too many collectives at once for the shared memory");
  }

  void choose_blocks() {
    for (const Names& names : names_) {
      any_staged_ = any_staged_ || names.staged != 0;
    }
    block_bytes_ = any_staged_ ? longest_block() : bytes();
    blocks_ = (bytes() + block_bytes_ - 1) / block_bytes_;
  }

  void copy_in(std::size_t b) {
    if (staged(op_.self()) && !block(b).empty()) {
      const Segments::Range range = block(b);
      const std::size_t at = begin_of(op_.self(), b);
      const Blob stage = stage_in_.slice(at, at + range.size());
      const ConstBlob from = in_.blob.slice(range.begin, range.end);
      precision_ == Precision::Full ? op_.arithmetic().copy(stage, from)
                                    : op_.arithmetic().through_bf16(in_.type, stage, from);
    }
  }

  void copy_out(std::size_t b) {
    if (staged(op_.self())) {
      const Segments::Range range = block(b);
      const std::size_t at = begin_of(op_.self(), b);
      op_.arithmetic().copy(out_.blob.slice(range.begin, range.end),
                            stage_out_.slice(at, at + range.size()), kernels::Store::Streaming);
    }
  }

  Task<void> gather_names() {
    co_await gather_records(op_, slot_, std::as_writable_bytes(std::span(names_)));
    slot_ += static_cast<Slot>(std::bit_width(op_.count()));
  }

  Task<void> barrier() {
    for (std::size_t distance = 1; distance < op_.count(); distance *= 2) {
      Request& theirs = op_.receive(op_.before(distance), slot_, {}, "its part of the sum");
      co_await op_.send(op_.after(distance), slot_, {});
      co_await theirs;
      ++slot_;
    }
  }

  Task<void> sum_own_segment(std::size_t b) {
    const Segments cut(block(b).size(), op_.count(), op_.engine().options().chunk / op_.count());
    for (std::size_t q = 0; q < cut.chunks(); ++q) {
      const Segments::Range range = cut.chunk(op_.self(), q);
      if (range.empty()) {
        break;
      }
      if (!sum_piece(b, range)) {
        // Somebody has withdrawn: the reason is on its way.
        co_await op_.receive(op_.after(1), kNever, {}, "the reason of its failure");
      }
      co_await op_.engine().yield();
    }
  }

  // False if somebody's memory cannot be had any more.
  bool sum_piece(std::size_t b, Segments::Range range) {
    const std::size_t k = op_.count();
    std::vector<ConstBlob> sources(k);
    std::vector<Blob> sums(k);
    std::size_t held = 0;
    bool all = true;
    for (; held < k && all; held += all ? 1 : 0) {
      all = hold(held, b, range, sources[held], sums[held]);
    }
    if (all) {
      // What lies in a stage is read again at once; what does not, is not.
      op_.arithmetic().sum_to_all(in_.type, sums, sources,
                                  any_staged_ ? kernels::Store::Cached : kernels::Store::Streaming);
    }
    for (std::size_t member = 0; member < held; ++member) {
      if (member != op_.self()) {
        endpoint_.release(op_.member(member), names_[member].in);
        endpoint_.release(op_.member(member), names_[member].out);
      }
    }
    return all;
  }

  bool hold(std::size_t member, std::size_t b, Segments::Range range, ConstBlob& source,
            Blob& sum) {
    const std::size_t begin = begin_of(member, b) + range.begin;
    const std::size_t end = begin + range.size();
    if (member == op_.self()) {
      source = (staged(member) ? ConstBlob(stage_in_) : in_.blob).slice(begin, end);
      sum = (staged(member) ? stage_out_ : out_.blob).slice(begin, end);
      return true;
    }
    const Rank owner = op_.member(member);
    const auto in = endpoint_.lease(owner, names_[member].in);
    if (!in) {
      return false;
    }
    const auto out = endpoint_.lease(owner, names_[member].out);
    if (!out) {
      endpoint_.release(owner, names_[member].in);
      return false;
    }
    source = in->slice(begin, end);
    sum = out->slice(begin, end);
    return true;
  }

  static constexpr Slot kNever = (1 << 28) - 1;

  Operation& op_;
  Endpoint& endpoint_;
  ConstBuffer in_;
  Buffer out_;
  Precision precision_;
  std::vector<Names> names_;  // by position
  Blob stage_;
  Blob stage_in_;
  Blob stage_out_;
  bool any_staged_ = false;
  std::size_t block_bytes_ = 0;
  std::size_t blocks_ = 0;
  Slot slot_ = 0;
};

}  // namespace

Task<void> reduce_in_shared_memory(Operation& op, ConstBuffer in, Buffer out, Precision precision) {
  for (std::size_t i = 0; i < op.count(); ++i) {
    require(op.engine().endpoint().shares_with(op.member(i)),
            "worker {} does not share memory with worker {}", op.member(op.self()), op.member(i));
  }
  Shared shared(op, in, out, precision);
  std::exception_ptr failure;
  try {
    co_await shared.run();
  } catch (...) {
    failure = std::current_exception();
  }
  co_await shared.recall();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace starling::comm
