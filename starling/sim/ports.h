// The wires: how long a message takes when others use the same cards.
//
// A message of b bytes leaves through one port and enters through another: the network cards of the
// two nodes, or, inside a node, the two workers' own ports to its memory. A port carries one
// message at a time per direction at its full rate, in the order in which they come; the entering
// port begins one latency after the leaving one, or when it is free: a message that is still under
// way keeps nobody out who is there before it. So alone a message takes latency + b / bandwidth,
// and messages that share a card share its bandwidth. Control messages wait only for each other and
// take their time from the bulk data they overtake.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "starling/base/time.h"
#include "starling/base/units.h"

namespace starling::sim {

struct PortOptions {
  std::size_t workers = 1;
  std::size_t per_node = 1;
  double latency = 5e-6;
  double bandwidth = 10e9;
  double local_latency = 1e-6;
  double local_bandwidth = 40e9;
};

class Ports {
 public:
  explicit Ports(const PortOptions& options);

  Node node_of(Rank rank) const {
    return {static_cast<std::uint32_t>(rank.index() / options_.per_node)};
  }

  // When a control message sent now is all there.
  SimTime control(SimTime now, Rank from, Rank to, std::size_t bytes, SimDuration extra);

  // Bulk data. offer(): sent now if its port is free (then the time when it is all there), or kept
  // in the port's queue. The port must be asked again, by next(), at `wake`, if that is set.
  struct Sent {
    std::uint32_t message;
    SimTime there;
  };
  struct Offer {
    std::optional<SimTime> there;
    std::optional<SimTime> wake;
    std::uint32_t port = 0;
  };
  Offer offer(SimTime now, Rank from, Rank to, std::size_t bytes, SimDuration extra,
              std::uint32_t message);
  // The first message in the queue of `port` goes, unless control messages have taken the port
  // meanwhile; `wake` as above.
  struct Next {
    std::optional<Sent> sent;
    std::optional<SimTime> wake;
  };
  Next next(SimTime now, std::uint32_t port);

  // What the card of a node has carried, or is about to: messages that wait for it not counted.
  struct Carried {
    std::uint64_t out = 0;
    std::uint64_t in = 0;
  };
  std::size_t nodes() const { return nodes_; }
  Carried carried(Node node) const { return ports_[node.index()].carried; }

 private:
  struct Waiting {
    Rank to;
    std::uint32_t message;
    std::size_t bytes;
    SimDuration extra;
  };
  // When the entering side of a port is taken by messages that have left already.
  class Calendar {
   public:
    // Takes the first `length` from `earliest` on that is free; returns its beginning.
    SimTime take(SimTime now, SimTime earliest, SimDuration length);

   private:
    struct Busy {
      SimTime begin;
      SimTime end;
    };
    std::vector<Busy> busy_;  // in order, apart from each other; what is over is dropped
  };
  struct Port {
    SimTime out_free{};
    SimTime control_out_free{};
    Calendar in;
    Calendar control_in;
    std::deque<Waiting> queue;
    Carried carried;
  };
  struct Route {
    std::uint32_t out;
    std::uint32_t in;
    SimDuration latency;
    double picoseconds_per_byte;
  };
  Route route(Rank from, Rank to) const;
  void count(const Route& route, std::size_t bytes);
  SimTime start(SimTime now, const Route& route, std::size_t bytes, SimDuration extra);

  PortOptions options_;
  SimDuration latency_;
  SimDuration local_latency_;
  double pace_;
  double local_pace_;
  std::size_t nodes_;
  std::vector<Port> ports_;  // one per node, then one per worker
};

}  // namespace starling::sim
