// The endpoint of a real worker: a process among others on this host and on other ones. A Wire
// carries packets and, between hosts, bulk data; between workers of a node bulk data is copied
// once, from pool to pool, and only its announcement travels.
//
// Bulk data, by rendezvous:
//   sender              receiver
//   Offer(tag, bytes) ─▶  … until the receive is posted …
//       ◀─ Take(number)   the wire's receive is posted
//   the wire's send   ─▶  done                                         between hosts
//
//   Offer(…, name)    ─▶  … copies from the sender's pool, under a lease …
//       ◀─ Taken                                                       on one node
// A sender that is cancelled before it was taken sends Withdraw; a Take that crosses it is answered
// by Void, and the receive waits for another offer. A receiver that is cancelled after Take lets
// what still comes run into the sand.
//
// Threads: one, except notify(), share() and unshare().
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "starling/comm/endpoint.h"
#include "starling/comm/lifeline.h"
#include "starling/comm/linger.h"
#include "starling/comm/pool.h"
#include "starling/comm/wire.h"

namespace starling::comm {

// Who the workers are and how they are reached.
struct Crew {
  Rank self{0};
  std::vector<Node> nodes;                     // by rank
  std::vector<std::optional<PoolView>> views;  // by rank; of those who share memory with us
  std::vector<std::size_t> seats;              // by rank; where each sits in the pools of its node
};

class HostEndpoint final : public Endpoint, private Wire::Listener {
 public:
  // Both are null for a single worker; without lifelines only the wire tells who is lost. The wire
  // is opened by the caller, with wire_listener().
  HostEndpoint(Crew crew, std::unique_ptr<Pool> pool, std::unique_ptr<Wire> wire,
               std::unique_ptr<Lifelines> lifelines);
  ~HostEndpoint() override;

  Wire::Listener& wire_listener() { return *this; }
  // Exchanges a first packet with everyone, so that all connections stand. Throws Error{Stalled} or
  // Error{Lost} naming a worker.
  void greet_all(Duration patience);
  Lifelines::Offset clock_offset(Rank peer) const;

  Rank rank() const override { return crew_.self; }
  std::size_t size() const override { return crew_.nodes.size(); }
  void listen(Endpoint::Listener& listener) override { listener_ = &listener; }
  void control(Rank to, std::span<const std::byte> message) override;
  void send(Rank to, Tag tag, ConstBlob data, Completion& completion) override;
  void receive(Rank from, Tag tag, Blob into, Completion& completion) override;
  void cancel(Completion& completion) override;
  Time now() const override;
  void timer(Time when, Completion& completion) override;
  void wait(Time until) override;
  void notify() override;
  Node node_of(Rank rank) const override { return crew_.nodes[rank.index()]; }
  bool shares_with(Rank peer) const override;
  Blob share(std::size_t bytes) override { return pool_->share(bytes); }
  void unshare(Blob memory) override { pool_->unshare(memory); }
  std::optional<std::uint64_t> publish(ConstBlob memory) override { return pool_->publish(memory); }
  void withdraw(std::uint64_t name) override { pool_->withdraw(name); }
  std::size_t leases(std::uint64_t name) const override { return pool_->leases(name); }
  std::optional<Blob> lease(Rank owner, std::uint64_t name) override;
  void release(Rank owner, std::uint64_t name) override;
  void abandon(std::uint64_t name) override { pool_->abandon(name); }
  void close() override;

 private:
  using Id = std::uint64_t;

  enum class Letter : std::uint32_t {
    Control,
    Offer,
    Take,
    Taken,
    Withdraw,
    Void,
    Greeting,   // the first packet
    Leaving,    // nothing follows; asks for
    Understood  // whatever it took part in has ended here
  };
  struct Header {
    Letter letter = Letter::Control;
    std::uint32_t reserved = 0;
    Tag tag = 0;
    Id id = 0;  // of the send
    std::uint64_t number =
        0;  // Offer: its name in the sender's pool, or 0. Take, Void: the transfer
    std::uint64_t bytes = 0;
  };
  static_assert(sizeof(Header) == 40 && sizeof(Header) + kMaxControl <= kMaxPacket);

  struct Key {
    Rank peer;
    Tag tag;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return (key.tag ^ (std::uint64_t{key.peer.value} << 32)) * 0x9E3779B97F4A7C15u >> 7;
    }
  };
  enum class State : std::uint8_t {
    Timer,
    Offered,    // a send whose receiver has not taken it
    Recalled,   // a cancelled send whose receiver is just copying
    Sending,    // a send that the wire has
    Posted,     // a receive that waits for an offer
    Receiving,  // a receive that the wire has
    Sand,       // a receive of ours that swallows what a cancelled one would have got
    Ending,     // its end is known and will be told in wait()
  };
  struct Item {
    State state = State::Timer;
    Completion* completion = nullptr;
    Rank peer{0};
    Tag tag = 0;
    Blob into{};               // of a receive
    ConstBlob data{};          // of a send
    std::uint64_t name = 0;    // of a send from the pool
    Blob stage{};              // of a send: the copy in the pool that was made for it
    std::uint64_t number = 0;  // of the wire's transfer
    bool cancelled = false;
    bool voided = false;  // its sender has withdrawn: it waits for another offer
    Time when{};          // of a timer; or when who still copies a recalled send is given up
    Finish how = Finish::Done;
    std::size_t bytes = 0;
    std::vector<std::byte> sand{};
  };
  struct Offer {
    Id id;
    std::uint64_t name;
    std::uint64_t bytes;
  };

  // Wire::Listener
  void on_packet(Rank from, std::span<const std::byte> packet) override;
  void on_transfer(Wire::Token token, bool done) override;
  void on_broken(Rank peer) override;

  void on_control(Rank from, std::span<const std::byte> message);
  void on_offer(Rank from, const Header& header);
  void on_take(Rank from, const Header& header);
  void on_taken(Rank from, const Header& header);
  void on_void(Rank from, const Header& header);
  void put_in_pool(Item& item);
  void take(Id receive, Rank from, const Offer& offer);
  void copy_from_peer(Id receive, Rank from, const Offer& offer);
  void post(Rank to, const Header& header, std::span<const std::byte> payload = {});

  Id add(Item item);
  Item& at(Id id) { return items_.at(id); }
  void end_soon(Id id, Finish how, std::size_t bytes = 0);
  void tell(Id id);
  void retract(Item& item);
  void lose(Rank peer);
  void look_after(Id id);
  bool all_of_them(const std::vector<bool>& said) const;
  void say_to_all(Letter letter, const std::vector<bool>& answered, Duration patience);
  void read_mail();
  void report();
  void let_go();
  void ring_timers();
  void look_at_lifelines();
  void sleep(Time until);
  void doze(Duration at_most);
  void poll_files(Duration at_most);
  // Between workers that share memory the wire carries nothing, except what found no room there;
  // looking after it costs several calls of the kernel each time.
  bool wire_in_use() const {
    return wire_ != nullptr && (!all_near_ || on_wire_ > 0 || lifelines_ == nullptr);
  }

  Crew crew_;
  bool all_near_ = true;          // whether we share memory with everyone
  std::size_t on_wire_ = 0;       // transfers that the wire has
  std::vector<Rank> neighbours_;  // the workers of our node, by seat
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Lifelines> lifelines_;
  Endpoint::Listener* listener_ = nullptr;
  std::atomic<bool> notified_{false};
  bool closed_ = false;

  Id next_id_ = 1;
  std::unordered_map<Id, Item> items_;
  std::map<std::pair<Time, Id>, Completion*> timers_;  // null: the endpoint's own
  std::unordered_map<Key, Id, KeyHash> posted_;
  std::unordered_map<Key, Offer, KeyHash> offers_;
  std::unordered_map<std::uint64_t, Id> by_number_;
  std::uint64_t next_number_ = 0;
  std::vector<Id> ending_;
  std::vector<Id> telling_;
  std::vector<Key> matched_;  // receives posted after their offer had come
  std::vector<Rank> broken_;
  std::vector<bool> lost_;
  std::vector<bool> greeted_;     // who has greeted us
  std::vector<bool> left_;        // who has said that it leaves
  std::vector<Rank> leavers_;     // who waits for our answer to that
  std::vector<bool> understood_;  // who has heard that we leave
  std::uint64_t told_ = 0;        // how often something was said
  Time busy_until_{};             // before that, one does not sleep
  Time looked_{};                 // when the lifelines were looked at
};

}  // namespace starling::comm
