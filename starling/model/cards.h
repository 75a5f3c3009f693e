// What passes the network cards of nodes when exchanges are under way, in models. Ranks of a node
// are consecutive; cards send and receive at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "starling/base/units.h"
#include "starling/model/exchange_costs.h"
#include "starling/model/setting.h"

namespace starling::model {

// How a group of m averages S bytes.
enum class Volume : std::uint8_t {
  Ring,    // one link of the ring leaves each node: 2(m − 1)/m · S through its card
  Direct,  // the k members of a node send 2k(m − k)/m · S through it
  // As comm/all_reduce does: nodes sum first, then send 2(H − 1)/H · S of H nodes; one after the
  // other.
  Nodes,
};

struct Card {
  double sent = 0;
  double received = 0;
  double busiest() const { return sent > received ? sent : received; }
};

class Cards {
 public:
  Cards(std::uint32_t per_node, Volume volume) : per_node_(per_node), volume_(volume) {}

  void add(const Exchange& exchange);

  bool crosses(std::span<const Rank> members) const;
  // Over which members are spread.
  double nodes(std::span<const Rank> members) const;
  // The most that a card of the exchange carries. Requires: it was added.
  double busiest(const Exchange& exchange) const;
  // The most that any carries.
  double busiest() const;

 private:
  std::size_t node(Rank rank) const { return rank.value / per_node_; }
  Card& card(Rank rank);
  void add_group(std::span<const Rank> members);
  void add_edges(std::span<const Rank> members);

  std::uint32_t per_node_;
  Volume volume_;
  std::vector<Card> cards_;
};

// Models through the busiest card, the busier way, per step, as comm/ sends them. Over whole
// periods of the schedule and the syncs, as far as they are not too long.
double models_per_card(const Setting& setting, std::uint32_t per_node);

}  // namespace starling::model
