// The engine of one worker: it runs the coroutines of collectives on an endpoint. It owns no clock
// and no thread; a driver calls run() after the endpoint has reported something (a thread on a real
// endpoint, the event queue in virtual time). Everything here belongs to that one thread.
//
// What it keeps between operations: mail that came early, a memory of the operations that ended
// (so that latecomers get an answer), the flow-control windows, and the workers known to be lost.
#pragma once

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "starling/base/cancellation.h"
#include "starling/base/time.h"
#include "starling/base/units.h"
#include "starling/comm/arithmetic.h"
#include "starling/comm/endpoint.h"
#include "starling/comm/letter.h"
#include "starling/comm/window.h"

namespace starling::comm {

class Operation;

struct EngineOptions {
  // Bytes per message of a large collective; 0: one message per segment.
  std::size_t chunk = 262144;
  // Unacknowledged messages per peer and operation. At least 2.
  std::size_t window = 16;
  // Whether all_reduce may sum in memory that its members share. The same on all workers.
  bool in_shared_memory = false;
  // Large groups of a power of two halve where they would send directly: as many bytes at the same
  // rate, in 2 log2 k messages per member in place of 2 (k - 1), and a few latencies more. For
  // simulations, which pay for every message. The same on all workers.
  bool few_messages = false;
  // No progress for this long: the operation fails, naming whom it waits for.
  Duration max_stall = std::chrono::minutes(10);
  // How long a stalled operation waits for the others to say whether they have started it.
  Duration answer_time = std::chrono::seconds(1);
};

// Ids of operations that a guest of the engine runs: this bit, then its series, then what it likes.
inline constexpr std::uint64_t kGuestId = std::uint64_t{1} << 63;
inline constexpr unsigned kSeriesShift = 56;
inline constexpr std::uint64_t kSeries = 128;

class Engine final : private Endpoint::Listener {
 public:
  Engine(Endpoint& endpoint, const Arithmetic& arithmetic, EngineOptions options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // What lives above collectives (rounds): it gets messages of its own, and hears of losses before
  // the operations do.
  class Guest {
   public:
    virtual void on_message(Rank from, std::uint32_t kind, std::span<const std::byte> message) = 0;
    virtual void on_lost(Rank peer) = 0;
    // Whether `peer` may not leave yet.
    virtual bool needs(Rank peer) const = 0;
    // Whether operation `id` will never begin here any more: mail for it is dropped.
    virtual bool is_over(std::uint64_t id) const = 0;
    // The engine ends: wakes whatever waits in it.
    virtual void on_close() = 0;

   protected:
    ~Guest() = default;
  };
  // From now on `guest` gets the messages of `series`, also those that came before. Series are used
  // once each, in rising order; the same on all workers. Those that ended here are not listened to.
  void invite(std::uint64_t series, Guest& guest);
  void dismiss(std::uint64_t series);
  void post_to_guest(Rank to, std::uint64_t series, std::uint32_t kind,
                     std::span<const std::byte> message);
  // Drops mail of operations that the guests call over.
  void drop_over();

  Rank rank() const { return endpoint_.rank(); }
  std::size_t size() const { return endpoint_.size(); }
  Time now() const { return endpoint_.now(); }
  const EngineOptions& options() const { return options_; }
  const Arithmetic& arithmetic() const { return arithmetic_; }
  Endpoint& endpoint() { return endpoint_; }
  bool closed() const { return closed_; }
  bool lost(Rank peer) const { return std::ranges::find(lost_, peer) != lost_.end(); }

  // Resumes what was ready when called; true if more has become ready meanwhile.
  bool run();
  void make_ready(std::coroutine_handle<> coroutine) { ready_.push_back(coroutine); }

  // Ends every operation and sleep with Error{Cancelled}; when this returns, no coroutine waits
  // here any more. Called by the destructor.
  void close();

  // co_await engine.sleep_until(t); ends early only by cancellation, which it throws.
  class Sleep final : private Completion, private Cancellation::Subscriber {
   public:
    Sleep(Engine& engine, Time until) : engine_(engine), until_(until) {}
    bool await_ready() const { return !engine_.closed_ && until_ <= engine_.now(); }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> coroutine) {
      return start(coroutine, coroutine.promise().cancellation);
    }
    void await_resume() const;

   private:
    bool start(std::coroutine_handle<> coroutine, Cancellation* cancellation);
    void finish(Finish how, std::size_t bytes) override;
    void on_cancel(const std::exception_ptr& reason) override;
    Engine& engine_;
    Time until_;
    std::coroutine_handle<> coroutine_;
    std::exception_ptr reason_;
  };
  Sleep sleep_until(Time until) { return {*this, until}; }
  Sleep sleep_for(Duration time) { return {*this, now() + time}; }

  // Lets everything else that is ready, and the endpoint, have a turn.
  auto yield() {
    struct Yield {
      Engine& engine;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> coroutine) const { engine.make_ready(coroutine); }
      void await_resume() const {}
    };
    return Yield{*this};
  }

 private:
  friend class Operation;

  struct Mail {
    Rank from;
    Header header;
    std::vector<std::byte> payload;
  };
  // An operation that ended here.
  struct Ended {
    std::uint64_t id = 0;
    bool known = false;
    Signature signature;
  };
  // An operation that was announced as failed before it began here.
  struct Refused {
    Signature signature;  // of whoever announced it
    std::exception_ptr failure;
  };
  class StallTimer;

  void on_control(Rank from, std::span<const std::byte> message) override;
  void on_lost(Rank peer) override;
  bool needs(Rank peer) const override;
  void on_data(Rank from, const Header& header, std::span<const std::byte> payload);
  void on_abort(Rank from, const Header& header, std::span<const std::byte> payload);
  void on_ack(Rank from, std::span<const std::byte> payload);
  void on_guest(Rank from, const Header& header, std::span<const std::byte> payload);
  bool is_over(std::uint64_t id) const;

  // The group that operations used last: with many members, reading it once is worth it.
  struct KnownGroup {
    std::vector<Rank> members;
    std::uint64_t hash = 0;
    bool valid = false;  // in rank order, each once, all existing
  };
  const KnownGroup& know(std::span<const Rank> members);

  // For Operation.
  void post(Rank to, const Header& header, ConstBlob payload);
  void post_abort(Rank to, std::uint64_t id, const Signature& signature, const Error& error);
  void begin(Operation& operation);
  void end(Operation& operation);
  std::vector<Mail> take_early(std::uint64_t id);
  Window& window(Rank peer);
  void consumed(Rank peer, std::uint64_t id);
  Ended& ended(std::uint64_t id) { return ended_[(id * 0x9E3779B97F4A7C15u) >> 57]; }

  Endpoint& endpoint_;
  const Arithmetic& arithmetic_;
  EngineOptions options_;
  bool closed_ = false;
  std::vector<std::coroutine_handle<>> ready_;
  std::vector<std::coroutine_handle<>> running_now_;
  // Ordered, so that whatever visits all of them does so in the same order on every run.
  std::map<std::uint64_t, Operation*> operations_;
  std::map<std::uint64_t, std::vector<Mail>> early_;
  std::map<std::uint64_t, Refused> refused_;
  std::map<std::uint64_t, Guest*> guests_;  // by series
  std::map<std::uint64_t, std::vector<Mail>> waiting_for_guests_;
  std::uint64_t newest_series_ = 0;  // of all guests so far
  std::set<std::uint64_t> dismissed_;
  std::unordered_map<Rank, Window> windows_;
  // In the order in which it was noticed: an operation that cannot be done names the first, because
  // others may have ended for the sake of that one.
  std::vector<Rank> lost_;
  std::array<Ended, 128> ended_;  // by a hash of the id; a newer one replaces an older one
  KnownGroup group_;
  std::unique_ptr<StallTimer> stall_timer_;
};

}  // namespace starling::comm
