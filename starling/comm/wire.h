// What a transport library has to do for a HostEndpoint; everything else (matching, rendezvous,
// cancellation, timers, losses, shared memory) is written once, there. Two implementations, each
// a module of its own: ucx_wire.cc and mpi_wire.cc.
//
// Everything is said from inside progress(); one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "starling/base/units.h"
#include "starling/comm/blob.h"
#include "starling/comm/endpoint.h"
#include "starling/comm/rendezvous.h"

namespace starling::comm {

// A control message and what HostEndpoint puts before it.
inline constexpr std::size_t kMaxPacket = kMaxControl + 64;

class Wire {
 public:
  // Names a transfer to its owner; the wire hands it back.
  using Token = std::uint64_t;

  class Listener {
   public:
    virtual void on_packet(Rank from, std::span<const std::byte> packet) = 0;
    // Exactly once per transfer. Not done: cancelled, or the peer is gone.
    virtual void on_transfer(Token token, bool done) = 0;
    // The connection to a peer has failed.
    virtual void on_broken(Rank peer) = 0;

   protected:
    ~Listener() = default;
  };

  virtual ~Wire() = default;

  // What the others need to reach this worker.
  virtual Bytestring address() const = 0;
  // Connects to everyone, by rank; packets of others than the job's workers, who know the secret,
  // are ignored from the first one on. Called once, before anything below.
  virtual void open(Rank self, std::span<const Bytestring> addresses, std::uint64_t secret,
                    Listener& listener) = 0;

  // At most kMaxPacket bytes, copied at once; in order per pair, never behind bulk data.
  virtual void packet(Rank to, std::span<const std::byte> packet) = 0;

  // One bulk transfer: the receiver posts receive() under a number of its choice, new for each, and
  // only then the sender, which has been told the number, calls send(). Sizes are equal.
  virtual void send(Rank to, std::uint64_t number, ConstBlob data, Token token) = 0;
  virtual void receive(Rank from, std::uint64_t number, Blob into, Token token) = 0;
  // If nothing of it has come yet it ends, as not done; otherwise it goes on.
  virtual void cancel_receive(Token token) = 0;

  // Gives a peer up: everything under way with it ends as not done, nothing is heard from it.
  // `left`: it had said that it leaves, and was understood.
  virtual void drop(Rank peer, bool left) = 0;

  // True if anything happened.
  virtual bool progress() = 0;
  // What can be slept on: files that become readable when there is something to do, once arm() has
  // said yes. No files: there is nothing to sleep on, and progress() has to be tried now and then.
  virtual std::span<const int> files() const = 0;
  virtual bool arm() = 0;

  // Lets what has been handed over leave, for a moment, then ends everything.
  virtual void close() = 0;
};

// What the modules export, as "starling_make_wire". Throws Error{Input}.
using MakeWire = Wire*(std::size_t workers);

}  // namespace starling::comm
