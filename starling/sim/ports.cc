#include "starling/sim/ports.h"

#include <algorithm>
#include <cmath>

#include "starling/base/error.h"

namespace starling::sim {
namespace {

SimDuration transfer(std::size_t bytes, double picoseconds_per_byte) {
  return SimDuration(std::llround(static_cast<double>(bytes) * picoseconds_per_byte));
}

}  // namespace

Ports::Ports(const PortOptions& options)
    : options_(options),
      latency_(sim_duration(options.latency)),
      local_latency_(sim_duration(options.local_latency)),
      pace_(1e12 / options.bandwidth),
      local_pace_(1e12 / options.local_bandwidth) {
  require(options.workers >= 1, "a network needs at least 1 worker");
  require(options.per_node >= 1, "a node needs at least 1 worker");
  require(options.latency >= 0 && options.local_latency >= 0, "latencies must not be negative");
  require(options.bandwidth > 0 && options.local_bandwidth > 0, "bandwidths must be positive");
  nodes_ = (options.workers + options.per_node - 1) / options.per_node;
  ports_.resize(nodes_ + options.workers);
}

Ports::Route Ports::route(Rank from, Rank to) const {
  const Node a = node_of(from);
  const Node b = node_of(to);
  if (a == b) {
    return {static_cast<std::uint32_t>(nodes_ + from.index()),
            static_cast<std::uint32_t>(nodes_ + to.index()), local_latency_, local_pace_};
  }
  return {a.value, b.value, latency_, pace_};
}

SimTime Ports::control(SimTime now, Rank from, Rank to, std::size_t bytes, SimDuration extra) {
  const Route way = route(from, to);
  const SimDuration time = transfer(bytes, way.picoseconds_per_byte);
  Port& out = ports_[way.out];
  Port& in = ports_[way.in];
  const SimTime leaves = std::max(now, out.control_out_free);
  out.control_out_free = leaves + time;
  out.out_free = std::max(out.out_free, leaves) + time;
  const SimTime enters = std::max(leaves + way.latency + extra, in.control_in_free);
  in.control_in_free = enters + time;
  return enters + time;
}

SimTime Ports::start(SimTime now, const Route& way, std::size_t bytes, SimDuration extra) {
  const SimDuration time = transfer(bytes, way.picoseconds_per_byte);
  Port& out = ports_[way.out];
  Port& in = ports_[way.in];
  out.out_free = now + time;
  const SimTime enters = std::max(now + way.latency + extra, in.in_free);
  in.in_free = enters + time;
  return enters + time;
}

Ports::Offer Ports::offer(SimTime now, Rank from, Rank to, std::size_t bytes, SimDuration extra,
                          std::uint32_t message) {
  const Route way = route(from, to);
  Port& out = ports_[way.out];
  Offer result{.there = {}, .wake = {}, .port = way.out};
  if (out.queue.empty() && out.out_free <= now) {
    result.there = start(now, way, bytes, extra);
    return result;
  }
  if (out.queue.empty()) {
    result.wake = out.out_free;
  }
  out.queue.push_back({to, message, bytes, extra});
  return result;
}

Ports::Next Ports::next(SimTime now, std::uint32_t port) {
  Port& out = ports_[port];
  check(!out.queue.empty(), "port {} was asked for a message it does not have", port);
  const Waiting waiting = out.queue.front();
  out.queue.pop_front();
  const bool local = port >= nodes_;
  const std::uint32_t in =
      local ? static_cast<std::uint32_t>(nodes_ + waiting.to.index()) : node_of(waiting.to).value;
  const Route way{port, in, local ? local_latency_ : latency_, local ? local_pace_ : pace_};
  Next result{.sent = {waiting.message, start(now, way, waiting.bytes, waiting.extra)}, .wake = {}};
  if (!out.queue.empty()) {
    result.wake = out.out_free;
  }
  return result;
}

}  // namespace starling::sim
