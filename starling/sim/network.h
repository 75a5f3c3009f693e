// A network in virtual time. Every worker has an Endpoint (endpoint.h in this room); the network
// moves their messages, tells the time and lets workers stop, resume and die. Events run one by one
// in the order of their time, so that a run is a pure function of its options, its seed and the
// programs; trace_hash() is a fingerprint of that order.
//
// One network, one thread. Many networks in one process do not know of each other.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/random.h"
#include "starling/base/time.h"
#include "starling/base/units.h"
#include "starling/comm/endpoint.h"
#include "starling/comm/engine.h"
#include "starling/sim/event_queue.h"
#include "starling/sim/ports.h"

namespace starling::sim {

class Endpoint;

struct NetworkOptions {
  PortOptions ports;
  // Up to this much is added to the latency of each message, at random: reorders pairs.
  double jitter = 0;
  // A death is noticed by each other worker after 0.5 … 1 of this, at random.
  double detection = 1e-3;
  // An engine has its turn up to this much after something has happened, at random, as on a real
  // endpoint: until then more may happen, and it finds several things at once.
  double laziness = 0;
  std::uint64_t seed = 1;
};

enum class FaultKind : std::uint8_t {
  Stop,
  Die,
  Cut,  // `worker` and all of higher rank are cut off from those of lower rank, for good
};

// What happens to a worker just before event number `at_event` of the run.
struct Fault {
  std::uint64_t at_event = 0;
  Rank worker{};
  FaultKind kind = FaultKind::Die;
  double seconds = 0;  // of a Stop: resumes by itself after this time
};

struct Traffic {
  std::uint64_t bulk_bytes = 0;
  std::uint64_t control_bytes = 0;
  std::uint64_t messages = 0;
};

class Network {
 public:
  explicit Network(NetworkOptions options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  std::size_t size() const { return workers_.size(); }
  comm::Endpoint& endpoint(Rank rank);
  // From now on the engine's coroutines run when something happens at its endpoint.
  void attach(comm::Engine& engine);

  // Runs one event; false if there is none.
  bool step();
  SimTime now() const { return now_; }

  // Now, or just before an event to come.
  void stop(Rank rank);
  void resume(Rank rank);
  void die(Rank rank);
  void cut(Rank first);
  void plan(const Fault& fault) { faults_.emplace(fault.at_event, fault); }
  bool dead(Rank rank) const;

  std::uint64_t events() const { return events_; }
  std::uint64_t messages() const { return messages_; }
  const Traffic& sent_by(Rank rank) const;
  const Ports& ports() const { return ports_; }
  std::uint64_t trace_hash() const { return trace_hash_; }
  // One line per event, if asked for before the run.
  void record(std::vector<std::string>& lines) { lines_ = &lines; }

 private:
  friend class Endpoint;

  enum class Kind : std::uint32_t { PortFree, Resume, Arrive, Control, Ring, Notice, Wake };

  enum class What : std::uint8_t { Send, Receive, Timer, End };

  // Something pending at one endpoint. Kept until it has been told its end and nothing in the event
  // queue or in a port's queue refers to it any more; told, its completion is null.
  struct Item {
    comm::Completion* completion = nullptr;
    std::byte* data = nullptr;
    std::size_t size = 0;
    comm::Tag tag = 0;
    Rank owner{};
    Rank peer{};
    std::uint32_t place = 0;  // in the owner's list of pending items
    What what = What::Send;
    bool referenced = false;
    bool in_table = false;                       // waits at the receiver for its counterpart
    comm::Finish how = comm::Finish::Cancelled;  // of an End
  };
  struct Letter {
    Rank from;
    Rank to;
    std::vector<std::byte> bytes;
  };
  struct LossNotice {
    Rank observer;
    Rank lost;
  };

  std::uint32_t add_item(const Item& item);
  void forget(std::uint32_t index);
  void tell(std::uint32_t index, comm::Finish how, std::size_t bytes);
  void schedule(SimTime at, Kind kind, std::uint32_t item);

  void apply(const Fault& fault);
  bool are_cut(Rank a, Rank b) const { return cut_ && (a < *cut_) != (b < *cut_); }
  void report_loss(Rank observer, Rank lost, const Random& draw);
  Rank subject_of(const Event& event) const;
  void run(const Event& event);
  void port_free(std::uint32_t port);
  void arrive(std::uint32_t index);
  void pair(std::uint32_t send, std::uint32_t receive);
  void deliver(std::uint32_t index);
  void notice(const LossNotice& loss);
  void drive(Rank rank);
  void drive_soon(Rank rank);
  void trace(const Event& event);
  SimDuration jitter();

  NetworkOptions options_;
  Ports ports_;
  Random random_;
  SimTime now_{};
  EventQueue queue_;
  std::vector<std::unique_ptr<Endpoint>> workers_;
  std::vector<Item> items_;
  std::vector<std::uint32_t> free_items_;
  std::deque<Letter> letters_;
  std::vector<std::uint32_t> free_letters_;
  std::vector<LossNotice> losses_;
  std::multimap<std::uint64_t, Fault> faults_;
  std::optional<Rank> cut_;  // the first rank beyond the cut
  std::uint64_t events_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t trace_hash_ = 0xCBF29CE484222325u;
  std::vector<std::string>* lines_ = nullptr;
};

}  // namespace starling::sim
