// The closed forms: what each collective costs on an idle network on which every worker has a card
// of its own, a message of b bytes takes latency + b / bandwidth, and arithmetic is free.
// Where members do not all do the same (a number that is not a power of two), the cards are
// followed message by message instead. What a simulated or a real run is held against.
#pragma once

#include <cstddef>

#include "starling/comm/all_reduce.h"

namespace starling::comm {

struct Link {
  double latency = 0;    // seconds
  double bandwidth = 0;  // bytes per second
};

struct Cost {
  double seconds = 0;
  double bytes = 0;  // payload that the busiest worker sends
};

Cost barrier_cost(std::size_t members, Link link);
// `chunk` as in EngineOptions.
Cost broadcast_cost(std::size_t members, double bytes, std::size_t chunk, Link link);
// Auto is resolved as all_reduce does. Contributions take `shrink` times fewer bytes on the wire
// (arithmetic.h).
Cost all_reduce_cost(AllReduce algorithm, std::size_t members, double bytes, Link link,
                     std::size_t shrink = 1);
// The most neighbours that any worker sends to or receives from.
Cost exchange_cost(std::size_t neighbours, double bytes, Link link);
Cost push_cost(std::size_t neighbours, double bytes, Link link);

}  // namespace starling::comm
