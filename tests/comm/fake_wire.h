// Wires in memory between endpoints of one process. What is handed over stays under way until the
// test lets it happen, thing by thing or at random: packets in order per pair, transfers in two
// halves, so that one can be caught in the middle.
//
// Owner: the test; must outlive the wires. Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "starling/base/random.h"
#include "starling/comm/wire.h"

namespace starling::comm {

class FakeNet {
 public:
  // Without files there is nothing to sleep on.
  explicit FakeNet(std::size_t workers, bool files = true);
  ~FakeNet();
  FakeNet(const FakeNet&) = delete;
  FakeNet& operator=(const FakeNet&) = delete;

  std::unique_ptr<Wire> wire(Rank self);

  // Lets one thing happen, drawn from all that may; false if there is none. What happened is told
  // by the wire's next progress().
  bool step(RandomSequence& draw);
  // All packets that are under way arrive, and from now on, if `always`, every one at once.
  void deliver_packets(bool always = false);
  // The first half, or all, of every transfer whose receive is posted.
  void begin_transfers() { move_transfers(false); }
  void finish_transfers() { move_transfers(true); }
  // Both will find the connection broken, each at a time of its own.
  void sever(Rank a, Rank b);
  // The same, at once.
  void sever_everything();
  // Nothing is under way, nor waits to be told.
  bool idle() const;
  // Counts everything that is handed over and told.
  std::uint64_t activity() const;
  // How often a worker was about to sleep.
  std::uint64_t arms(Rank of) const;
  // Of packets that were handed over.
  std::uint64_t packets() const;

 private:
  class End;
  struct Event {
    enum class Kind : std::uint8_t { Packet, Transfer, Broken };
    Kind kind = Kind::Packet;
    Rank peer{0};
    std::vector<std::byte> bytes{};
    Wire::Token token = 0;
    bool done = false;
  };
  struct Port {
    Wire::Listener* listener = nullptr;
    std::deque<Event> arrived;
    std::vector<std::deque<std::vector<std::byte>>> to;  // packets under way, by receiver
    std::vector<bool> dropped;
    bool closed = false;
    int file = -1;
    std::uint64_t arms = 0;
  };
  struct Send {
    Rank from, to;
    std::uint64_t number;
    ConstBlob data;
    Wire::Token token;
    bool left = false;              // the sender was told that it is done
    std::vector<std::byte> copy{};  // then
  };
  struct Receive {
    Rank at, from;
    std::uint64_t number;
    Blob into;
    Wire::Token token;
    bool begun = false;
  };
  struct Break {
    Rank at, peer;
  };

  Port& port(Rank rank) { return ports_[rank.index()]; }
  void tell(Rank at, Event event);
  void arrive(Rank from, Rank to);
  void leave(Send& send);
  std::list<Receive>::iterator receive_of(const Send& send);
  void begin(const Send& send, Receive& receive);
  void finish(std::list<Send>::iterator send, std::list<Receive>::iterator receive);
  void break_now(Break broken);
  void move_transfers(bool all);
  void end_transfers(Rank at, Rank peer);

  mutable std::mutex mutex_;  // guards everything below
  bool files_;
  bool at_once_ = false;
  std::uint64_t activity_ = 0;
  std::uint64_t packets_ = 0;
  std::vector<Port> ports_;
  std::list<Send> sends_;
  std::list<Receive> receives_;
  std::vector<Break> breaks_;
};

}  // namespace starling::comm
