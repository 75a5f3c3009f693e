#include "starling/comm/cost.h"

#include "starling/base/error.h"
#include "starling/comm/letter.h"
#include "starling/comm/segments.h"

namespace starling::comm {
namespace {

std::size_t hops(std::size_t members) {
  std::size_t levels = 0;
  while ((std::size_t{1} << levels) < members) {
    ++levels;
  }
  return levels;
}

double hop(double bytes, Link link) {
  // A small message carries its header along.
  const double size = bytes <= static_cast<double>(kSmall) ? bytes + sizeof(Header) : bytes;
  return link.latency + size / link.bandwidth;
}

// A short last block serves the whole sibling block: each of its members sends several times.
Cost doubling_cost(std::size_t k, double bytes, Link link) {
  Cost cost;
  for (std::size_t width = 1; width < k; width *= 2) {
    const std::size_t rest = k % (2 * width);
    const std::size_t right = rest > width ? rest - width : width;
    const std::size_t fan_out = (width + right - 1) / right;
    const double sends = static_cast<double>(fan_out);
    cost.seconds += link.latency + sends * (hop(bytes, link) - link.latency);
    cost.bytes += sends * bytes;
  }
  return cost;
}

// Members of a block that is short because k is not a power of two carry more; see
// all_reduce_halving.cc. A level lasts as long as its busiest member needs, which holds all
// portions of its block that its missing siblings would have held.
Cost halving_cost(std::size_t k, double bytes, Link link) {
  Cost cost;
  for (std::size_t level = 0; (std::size_t{1} << level) < k; ++level) {
    const std::size_t width = std::size_t{1} << level;
    const std::size_t rest = k % (2 * width);
    // The right block of the last pair has rest - width members if that is positive.
    double busiest = 1;  // portions held by one member of the pair's smaller block
    if (rest > width) {
      const std::size_t right = rest - width;
      std::size_t portions = width;
      // A block of n members over 2^level portions: its last member is alone in its sub-blocks.
      for (std::size_t n = right, w = width / 2; w > 0; w /= 2) {
        if (n > w) {
          n -= w;
          portions /= 2;
        }
      }
      busiest = static_cast<double>(portions);
    }
    const double piece = bytes / static_cast<double>(2 * width);
    cost.seconds += 2 * (link.latency + busiest * (hop(piece, link) - link.latency));
    cost.bytes += 2 * busiest * piece;
  }
  return cost;
}

}  // namespace

Cost barrier_cost(std::size_t members, Link link) {
  return {.seconds = static_cast<double>(hops(members)) * hop(0, link), .bytes = 0};
}

Cost broadcast_cost(std::size_t members, double bytes, std::size_t chunk, Link link) {
  if (members == 1) {
    return {};
  }
  if (bytes <= static_cast<double>(kSmall) || members == 2) {
    const double levels = static_cast<double>(hops(members));
    return {.seconds = levels * hop(bytes, link), .bytes = levels * bytes};
  }
  // The root sends everything once; the owner of its last piece then still has to pass that on to
  // k - 2 others.
  const Segments cut(static_cast<std::size_t>(bytes), members - 1, chunk);
  const double last = static_cast<double>(cut.chunk(0, cut.chunks() - 1).size());
  const double others = static_cast<double>(members - 2);
  return {.seconds = 2 * link.latency + (bytes + others * last) / link.bandwidth, .bytes = bytes};
}

Cost all_reduce_cost(AllReduce algorithm, std::size_t members, double bytes, Link link) {
  if (members == 1) {
    return {};
  }
  const double k = static_cast<double>(members);
  switch (algorithm) {
    case AllReduce::Auto:
      return all_reduce_cost(choose(members, static_cast<std::size_t>(bytes)), members, bytes,
                             link);
    case AllReduce::Doubling:
      return doubling_cost(members, bytes, link);
    case AllReduce::Direct:
      return {.seconds = 2 * (link.latency + (k - 1) * (hop(bytes / k, link) - link.latency)),
              .bytes = 2 * (k - 1) / k * bytes};
    case AllReduce::Halving:
      return halving_cost(members, bytes, link);
    case AllReduce::Ring:
      return {.seconds = 2 * (k - 1) * hop(bytes / k, link), .bytes = 2 * (k - 1) / k * bytes};
  }
  check(false, "no closed form for algorithm {}", static_cast<int>(algorithm));
  return {};
}

Cost exchange_cost(std::size_t neighbours, double bytes, Link link) {
  if (neighbours == 0) {
    return {};
  }
  const double n = static_cast<double>(neighbours);
  return {.seconds = link.latency + n * (hop(bytes, link) - link.latency), .bytes = n * bytes};
}

}  // namespace starling::comm
