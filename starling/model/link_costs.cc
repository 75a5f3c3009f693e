#include "starling/model/link_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "starling/base/error.h"

namespace starling::model {
namespace {

// In models: what passes a node's card in one step.
struct Card {
  double sent = 0;
  double received = 0;
  double busiest() const { return std::max(sent, received); }
};

class Cards {
 public:
  Cards(const Links& links, Volume volume, std::span<const Exchange> active)
      : links_(links), volume_(volume) {
    for (const Exchange& exchange : active) {
      exchange.closed ? add_group(exchange.members) : add_edges(exchange.members);
    }
  }

  std::size_t node(Rank rank) const { return rank.value / links_.per_node; }

  bool crosses(std::span<const Rank> members) const {
    return std::any_of(members.begin(), members.end(),
                       [&](Rank r) { return node(r) != node(members.front()); });
  }

  // Over which members are spread.
  double nodes(std::span<const Rank> members) const {
    double count = 1;
    for (std::size_t i = 1; i < members.size(); ++i) {
      count += node(members[i]) != node(members[i - 1]) ? 1 : 0;
    }
    return count;
  }

  // The most that a card of the exchange carries.
  double busiest(const Exchange& exchange) const {
    if (!exchange.closed) {
      double most = cards_[node(exchange.members.front())].received;
      for (const Rank from : exchange.members.subspan(1)) {
        if (node(from) != node(exchange.members.front())) {
          most = std::max(most, cards_[node(from)].sent);
        }
      }
      return most;
    }
    double most = 0;
    for (const Rank member : exchange.members) {
      most = std::max(most, cards_[node(member)].busiest());
    }
    return most;
  }

 private:
  Card& card(Rank rank) {
    if (cards_.size() <= node(rank)) {
      cards_.resize(node(rank) + 1);
    }
    return cards_[node(rank)];
  }

  // Members are in order of rank, so those of a node follow each other.
  void add_group(std::span<const Rank> members) {
    const auto m = static_cast<double>(members.size());
    const double of_nodes = nodes(members);
    for (std::size_t first = 0; first < members.size();) {
      std::size_t end = first;
      while (end < members.size() && node(members[end]) == node(members[first])) {
        ++end;
      }
      const auto k = static_cast<double>(end - first);
      const double part = volume_ == Volume::Ring     ? (m - 1) / m
                          : volume_ == Volume::Direct ? k * (m - k) / m
                                                      : (of_nodes - 1) / of_nodes;
      const double passes = k == m ? 0 : 2 * part;
      Card& at = card(members[first]);
      at.sent += passes;
      at.received += passes;
      first = end;
    }
  }

  void add_edges(std::span<const Rank> members) {
    card(members.front());
    for (const Rank from : members.subspan(1)) {
      if (node(from) != node(members.front())) {
        card(from).sent += 1;
        card(members.front()).received += 1;
      }
    }
  }

  const Links& links_;
  Volume volume_;
  std::vector<Card> cards_;
};

}  // namespace

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
  const Cards cards(links_, volume_, active);
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
