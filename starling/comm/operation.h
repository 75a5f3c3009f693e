// One running collective on one worker: its identity, its members, and everything it has under way.
//
// A collective is a coroutine `body` that sends to and receives from positions in the group:
//     Request& r = op.receive(from, slot, into, "its contribution");   // posted now
//     co_await op.send(to, slot, data);     // waits only while the peer's window is full
//     co_await r;                           // waits for the message
// Small messages travel as mail, large ones as bulk data; the body need not care. The body is the
// only coroutine that waits here, so an operation always knows the one thing it waits for.
//
// run() surrounds the body. If anything fails (a lost member, a mismatch, a stall, cancellation, an
// exception of the body) everything under way is called back, and when nothing is under way any
// more the members are told and the error is thrown, naming operation and workers. Inputs are
// never written; an output is complete, or the call has thrown.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/base/cancellation.h"
#include "starling/base/task.h"
#include "starling/base/time.h"
#include "starling/comm/engine.h"
#include "starling/comm/report.h"

namespace starling::comm {

// Which operation: the same `id` on all its members, used once. Workers that share several
// operations start them in the order of their ids (several may be under way at once).
struct Call {
  std::uint64_t id = 0;
  std::span<const Rank> members;  // in rank order, this worker among them
};

using Slot = std::uint32_t;

class Operation;

// Memory that a message is sent from and that is filled again when the message has been taken.
struct Loan {
  bool out = false;
};

// A message that this worker awaits, or a send under way. Owned by its operation.
class Request final : private Completion {
 public:
  explicit Request(Operation& operation) : operation_(operation) {}

  struct Awaiter {
    Request& request;
    bool await_ready() const;
    void await_suspend(std::coroutine_handle<> body) const;
    void await_resume() const;
  };
  Awaiter operator co_await() { return {*this}; }

 private:
  friend class Operation;
  enum class State : std::uint8_t { Free, Send, Receive, Mail, Arrived };

  void finish(Finish how, std::size_t bytes) override;

  Operation& operation_;
  State state_ = State::Free;
  std::uint32_t position_ = 0;
  Slot slot_ = 0;
  Blob into_;
  const char* what_ = "";
  Loan* loan_ = nullptr;     // of a send
  Request* next_ = nullptr;  // in a list of expected mail, or of free requests
};

class Operation final : private Cancellation::Subscriber {
 public:
  // Who says "I am in" to whom ahead of bulk data, and what a failure does.
  enum class Reach {
    Group,       // all members take part in one collective; the next member checks the signature
    Neighbours,  // each worker has a group of its own; failures are passed on
  };

  // When "I am in" is said by a message of its own.
  enum class Greet {
    BeforeBulk,  // small messages say it themselves
    Always,  // the buffer is cut into one piece per member, and a member may have nothing to say
    Never,   // every member sends and receives small messages anyway
  };

  Operation(Engine& engine, Call call, Signature signature, Reach reach = Reach::Group,
            Greet greet = Greet::BeforeBulk);
  ~Operation();

  Task<Report> run(Task<void> body);

  // For bodies. Positions count the members in rank order.
  std::size_t count() const { return members_.size(); }
  std::size_t self() const { return self_; }
  Rank member(std::size_t position) const { return members_[position]; }
  bool has(Rank rank) const { return std::binary_search(members_.begin(), members_.end(), rank); }
  std::size_t position_of(Rank rank) const;
  std::size_t after(std::size_t distance) const { return (self_ + distance) % count(); }
  std::size_t before(std::size_t distance) const {
    return (self_ + count() - distance % count()) % count();
  }
  const Arithmetic& arithmetic() const { return engine_.arithmetic(); }
  Engine& engine() { return engine_; }
  // Memory that lives until nothing of this operation is under way.
  Blob scratch(std::size_t bytes);
  // The same for what is not payload: real also where payload is weightless.
  std::span<std::byte> memory(std::size_t bytes);
  std::span<Loan> loans(std::size_t count);

  Request& receive(std::size_t from, Slot slot, Blob into, const char* what);

  struct Sending {
    Operation& operation;
    std::size_t to;
    Slot slot;
    ConstBlob data;
    Loan* loan;
    bool await_ready() const { return operation.try_send(*this); }
    void await_suspend(std::coroutine_handle<> body) const;
    void await_resume() const { operation.throw_if_failed(); }
  };
  // Without a loan `data` stays as it is until nothing of this operation is under way.
  Sending send(std::size_t to, Slot slot, ConstBlob data, Loan* loan = nullptr) {
    return {*this, to, slot, data, loan};
  }

  struct Returning {
    Operation& operation;
    std::size_t from;
    Loan* loan;
    bool await_ready() const {
      return loan == nullptr || !loan->out || operation.failure_ != nullptr;
    }
    void await_suspend(std::coroutine_handle<> body) const;
    void await_resume() const { operation.throw_if_failed(); }
  };
  // co_await op.returned(from, loan): until member `from` has taken what was sent to it with `loan`
  // (none: at once).
  Returning returned(std::size_t from, Loan* loan) { return {*this, from, loan}; }

 private:
  friend class Engine;
  friend class Request;

  struct Peer {
    std::uint32_t sends = 0;  // bulk sends under way
    bool started = false;     // what it answered to a Query
    bool answered = false;
    Duration waited{0};
    Request* expected = nullptr;       // mail that the body awaits
    std::vector<Engine::Mail> unread;  // mail that the body has not asked for yet
  };
  struct Waiting {
    std::coroutine_handle<> body;
    const void* on = nullptr;
    std::optional<std::size_t> position;
    const char* what = "";
    Time since{};
    const Sending* sending = nullptr;  // what to send as soon as there is room
  };
  struct Drain {
    Operation& operation;
    bool await_ready() const { return operation.under_way_ == 0; }
    void await_suspend(std::coroutine_handle<> body) const;
    void await_resume() const {}
  };
  struct Greetings {
    Operation& operation;
    bool await_ready() const;
    void await_suspend(std::coroutine_handle<> body) const;
    void await_resume() const { operation.throw_if_failed(); }
  };

  void validate() const;
  void open(Cancellation* cancellation);
  void greet();
  void greet(std::size_t position);
  // What is kept of a member; made when first needed, for groups may be large and partners few.
  Peer& peer(std::size_t position) {
    auto& known = peers_[position];
    if (known == nullptr) {
      known = std::make_unique<Peer>();
    }
    return *known;
  }
  bool try_send(const Sending& sending);
  void deliver(Rank from, const Header& header, std::span<const std::byte> payload);
  void mismatch(Rank from, const Signature& theirs);
  void sent(Request& request, Finish how);
  void received(Request& request, Finish how, std::size_t bytes);
  void peer_lost(Rank peer);
  void fail(std::exception_ptr error, bool heard = false);
  void announce() const;
  void on_cancel(const std::exception_ptr& reason) override;

  void wait(std::coroutine_handle<> body, const void* on, std::optional<std::size_t> position,
            const char* what, const Sending* sending = nullptr);
  void wake(const void* on);
  void charge(std::size_t position);
  void progress() { last_progress_ = engine_.now(); }
  void throw_if_failed() const;
  Request& new_request(Request::State state, std::size_t position, Slot slot);
  void free_request(Request& request);
  Tag tag(Slot slot) const;

  // Stalls: returns when to look again.
  Time check_stall(Time now);
  void answered(Rank from, bool started);
  std::string stall_text() const;
  std::string title() const;
  std::string waiting_text() const;

  Engine& engine_;
  std::uint64_t id_;
  std::vector<Rank> members_;
  Signature signature_;
  Reach reach_;
  Greet greet_;
  std::size_t self_ = 0;
  bool is_member_ = false;
  bool used_ = false;  // the id has been used up by this
  bool open_ = false;
  bool heard_ = false;  // the others know of the failure, or must not be told
  std::exception_ptr failure_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::size_t greetings_ = 0;           // Hellos that have come
  std::size_t greetings_expected_ = 0;  // and that must, before this can end
  std::deque<Request> requests_;
  Request* free_ = nullptr;
  std::vector<Scratch> scratch_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<std::unique_ptr<Loan[]>> loans_;
  std::size_t under_way_ = 0;  // bulk requests posted and not finished
  Waiting waiting_;
  Time started_{};
  Time last_progress_{};
  std::optional<Time> asked_;  // when the others were asked whether they have started
};

}  // namespace starling::comm
