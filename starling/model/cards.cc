#include "starling/model/cards.h"

#include <algorithm>

#include "starling/model/rounds_of_steps.h"

namespace starling::model {

void Cards::add(const Exchange& exchange) {
  exchange.closed ? add_group(exchange.members) : add_edges(exchange.members);
}

bool Cards::crosses(std::span<const Rank> members) const {
  return std::any_of(members.begin(), members.end(),
                     [&](Rank r) { return node(r) != node(members.front()); });
}

double Cards::nodes(std::span<const Rank> members) const {
  double count = 1;
  for (std::size_t i = 1; i < members.size(); ++i) {
    count += node(members[i]) != node(members[i - 1]) ? 1 : 0;
  }
  return count;
}

double Cards::busiest(const Exchange& exchange) const {
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

double Cards::busiest() const {
  double most = 0;
  for (const Card& card : cards_) {
    most = std::max(most, card.busiest());
  }
  return most;
}

Card& Cards::card(Rank rank) {
  if (cards_.size() <= node(rank)) {
    cards_.resize(node(rank) + 1);
  }
  return cards_[node(rank)];
}

// Members are in order of rank, so those of a node follow each other.
void Cards::add_group(std::span<const Rank> members) {
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

void Cards::add_edges(std::span<const Rank> members) {
  card(members.front());
  for (const Rank from : members.subspan(1)) {
    if (node(from) != node(members.front())) {
      card(from).sent += 1;
      card(members.front()).received += 1;
    }
  }
}

double models_per_card(const Setting& setting, std::uint32_t per_node) {
  constexpr std::int64_t kMostSteps = 240;  // whole sync periods of most lengths
  Setting takes = setting;
  takes.push_waits = false;  // what is needed of an exchange is then what it takes
  RoundsOfSteps rounds(takes);
  const bool only_syncs = setting.algorithm->cadence == topology::Cadence::EveryPeriod;
  const std::int64_t steps = std::min(kMostSteps, rounds.period().value_or(kMostSteps));
  Cards cards(per_node, Volume::Nodes);
  for (std::int64_t t = 0; t < steps; ++t) {
    if (only_syncs && !rounds.is_sync(t)) {
      continue;
    }
    for (const PlannedExchange& exchange : rounds.at(t).exchanges()) {
      cards.add({.members = exchange.needs, .closed = exchange.closed});
    }
  }
  return cards.busiest() / static_cast<double>(steps);
}

}  // namespace starling::model
