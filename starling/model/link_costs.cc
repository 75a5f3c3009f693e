#include "starling/model/link_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "starling/base/error.h"

namespace starling::model {

LinkCosts::LinkCosts(Links links, std::vector<Bytes> buckets, Volume volume)
    : links_(links), buckets_(std::move(buckets)), volume_(volume) {
  require(links.per_node >= 1, "links: at least one worker per node");
  require(links.bandwidth > 0 && links.local_bandwidth > 0, "links: bandwidths are more than 0");
  require(links.latency >= 0 && links.local_latency >= 0, "links: latencies are at least 0");
}

void LinkCosts::seconds(std::size_t bucket, Step, std::span<const Exchange> active,
                        std::span<double> out) const {
  check(bucket < buckets_.size(), "no size of bucket {}", bucket);
  const auto bytes = static_cast<double>(buckets_[bucket].value);
  Cards cards(links_.per_node, volume_);
  for (const Exchange& exchange : active) {
    cards.add(exchange);
  }
  for (std::size_t i = 0; i < active.size(); ++i) {
    const Exchange& exchange = active[i];
    const auto m = static_cast<double>(exchange.members.size());
    if (m <= 1) {
      out[i] = 0;
      continue;
    }
    const bool crosses = cards.crosses(exchange.members);
    const double sent = exchange.closed ? 2 * (m - 1) / m : m - 1;
    double hops = 1;
    if (exchange.closed) {
      hops = volume_ == Volume::Ring     ? 2 * (m - 1)
             : volume_ == Volume::Direct ? 2
                                         : 2 * std::ceil(std::log2(m));
    }
    const double across = crosses ? cards.busiest(exchange) * bytes / links_.bandwidth : 0;
    const bool sums_first = volume_ == Volume::Nodes && exchange.closed && crosses;
    const double local = (sums_first ? 2 * (1 - cards.nodes(exchange.members) / m) : sent) * bytes /
                         links_.local_bandwidth;
    out[i] = hops * (crosses ? links_.latency : links_.local_latency) +
             (sums_first ? local + across : std::max(local, across));
  }
}

}  // namespace starling::model
