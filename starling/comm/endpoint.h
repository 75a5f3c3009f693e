// The Endpoint seam: all that comm knows of the outside world. One endpoint per worker; used by one
// thread, except notify(). Implementations: sim (virtual time), ucx, mpi.
//
// Everything an endpoint has to say (a message, a completion, a lost peer) is said from inside
// wait() or close(), or by the event loop of the virtual network; never from inside another call.
// So nobody is called back while calling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "starling/base/time.h"
#include "starling/base/units.h"
#include "starling/comm/blob.h"

namespace starling::comm {

// Names one message between two workers; a pair never has two with the same tag under way.
using Tag = std::uint64_t;

inline constexpr std::size_t kMaxControl = 4096;

enum class Finish : std::uint8_t { Done, Cancelled, Lost };

// Told exactly once how a send, a receive or a timer ended. The buffer belongs to the endpoint
// until then, also after cancel(); so does this object.
class Completion {
 public:
  Completion() = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;
  virtual ~Completion() = default;
  // `bytes`: of a receive, how many the sender sent; at most the receive's size were written.
  virtual void finish(Finish how, std::size_t bytes) = 0;

  // For the endpoint's own use while pending.
  std::uint64_t endpoint_handle = 0;
};

class Endpoint {
 public:
  class Listener {
   public:
    virtual void on_control(Rank from, std::span<const std::byte> message) = 0;
    // Once per peer, also for peers never spoken to. Nothing is heard from it afterwards.
    virtual void on_lost(Rank peer) = 0;
    // Whether something that includes `peer` is under way: a peer that wants to leave waits for its
    // end.
    virtual bool needs(Rank peer) const = 0;

   protected:
    ~Listener() = default;
  };

  virtual ~Endpoint() = default;
  virtual Rank rank() const = 0;
  virtual std::size_t size() const = 0;

  // (1) Control messages of at most kMaxControl bytes, copied at once, in order per pair, never
  // behind bulk data. To a lost peer: dropped. Requires: to != rank().
  virtual void listen(Listener& listener) = 0;
  virtual void control(Rank to, std::span<const std::byte> message) = 0;

  // (2) Bulk data. A send is Done when the peer has posted the receive and the buffer may be
  // reused: so the number of unfinished sends bounds what waits at the peer. Ends as Lost when the
  // peer is. Requires: peer != rank(), size > 0.
  virtual void send(Rank to, Tag tag, ConstBlob data, Completion& completion) = 0;
  virtual void receive(Rank from, Tag tag, Blob into, Completion& completion) = 0;
  // Asks for an early end, as Cancelled; it may still end as Done. Requires: `completion` pending.
  virtual void cancel(Completion& completion) = 0;

  // (3) The worker's clock, and timers: `completion` is Done at `when` or soon after.
  virtual Time now() const = 0;
  virtual void timer(Time when, Completion& completion) = 0;

  // (4) Sleeps until something happened here, notify() was called, or `until`; reports it all.
  virtual void wait(Time until) = 0;
  // From any thread: the running or the next wait() returns.
  virtual void notify() = 0;

  // (5) is Listener::on_lost.

  // (6) Same-host memory. share() takes memory from the own pool, from any thread. publish() names
  // a stretch of it for the others (nothing if it is not from the pool); lease() gives a view of
  // what a peer has named, or nothing if the name does not stand (any more). After withdraw() no
  // lease begins; the owner must not reuse the memory while leases() is not 0, and not ask again
  // once it was. A lease ends by release() or by the loss of its holder; a worker holds a name at
  // most once.
  virtual Node node_of(Rank rank) const = 0;
  // Whether the two of them can lease each other's memory: the same answer on both.
  virtual bool shares_with(Rank peer) const = 0;
  virtual Blob share(std::size_t bytes) = 0;
  virtual void unshare(Blob memory) = 0;
  virtual std::optional<std::uint64_t> publish(ConstBlob memory) = 0;
  virtual void withdraw(std::uint64_t name) = 0;
  virtual std::size_t leases(std::uint64_t name) const = 0;
  virtual std::optional<Blob> lease(Rank owner, std::uint64_t name) = 0;
  virtual void release(Rank owner, std::uint64_t name) = 0;
  // Takes withdrawn memory back from those who still hold it: they go on with the old pages, the
  // owner finds the same bytes at the same place, but that memory is in the pool no more.
  virtual void abandon(std::uint64_t name) = 0;

  // Ends everything: whatever is pending is told Cancelled before this returns, and nothing is
  // said afterwards.
  virtual void close() = 0;
};

}  // namespace starling::comm
