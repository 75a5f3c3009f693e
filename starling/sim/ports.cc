#include "starling/sim/ports.h"

#include <algorithm>
#include <cmath>
#include <iterator>

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

SimTime Ports::Calendar::take(SimTime now, SimTime earliest, SimDuration length) {
  const auto over =
      std::find_if(busy_.begin(), busy_.end(), [&](const Busy& b) { return b.end > now; });
  busy_.erase(busy_.begin(), over);
  auto next = std::partition_point(busy_.begin(), busy_.end(),
                                   [&](const Busy& b) { return b.end <= earliest; });
  SimTime begin = earliest;
  for (; next != busy_.end() && next->begin < begin + length; ++next) {
    begin = next->end;
  }
  const SimTime end = begin + length;
  const bool joins_next = next != busy_.end() && next->begin == end;
  const bool joins_last = next != busy_.begin() && std::prev(next)->end == begin;
  if (joins_last && joins_next) {
    std::prev(next)->end = next->end;
    busy_.erase(next);
  } else if (joins_last) {
    std::prev(next)->end = end;
  } else if (joins_next) {
    next->begin = begin;
  } else {
    busy_.insert(next, {begin, end});
  }
  return begin;
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
  const SimTime leaves = std::max(now, out.control_out_free);
  out.control_out_free = leaves + time;
  out.out_free = std::max(out.out_free, leaves) + time;
  count(way, bytes);
  return ports_[way.in].control_in.take(now, leaves + way.latency + extra, time) + time;
}

void Ports::count(const Route& way, std::size_t bytes) {
  ports_[way.out].carried.out += bytes;
  ports_[way.in].carried.in += bytes;
}

SimTime Ports::start(SimTime now, const Route& way, std::size_t bytes, SimDuration extra) {
  const SimDuration time = transfer(bytes, way.picoseconds_per_byte);
  ports_[way.out].out_free = now + time;
  count(way, bytes);
  return ports_[way.in].in.take(now, now + way.latency + extra, time) + time;
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
  if (now < out.out_free) {
    return {.sent = {}, .wake = out.out_free};
  }
  const Waiting waiting = out.queue.front();
  out.queue.pop_front();
  const bool local = port >= nodes_;
  const std::uint32_t in =
      local ? static_cast<std::uint32_t>(nodes_ + waiting.to.index()) : node_of(waiting.to).value;
  const Route way{port, in, local ? local_latency_ : latency_, local ? local_pace_ : pace_};
  Next result{.sent = Sent{waiting.message, start(now, way, waiting.bytes, waiting.extra)},
              .wake = {}};
  if (!out.queue.empty()) {
    result.wake = out.out_free;
  }
  return result;
}

}  // namespace starling::sim
