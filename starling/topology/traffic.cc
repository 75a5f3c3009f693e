#include "starling/topology/traffic.h"

#include <algorithm>
#include <vector>

namespace starling::topology {
namespace {

struct Cards {
  std::vector<double> sent;
  std::vector<double> received;
};

// Adds up the links of one step.
class StepTraffic {
 public:
  StepTraffic(Cards& cards, std::uint32_t per_node, double model, double& link_peak)
      : cards_(cards), per_node_(per_node), model_(model), link_peak_(link_peak) {}

  // What worker `rank` sends in this step.
  void add(Rank rank, const Row& row) {
    if (const auto* group = std::get_if<Group>(&row)) {
      const auto m = static_cast<double>(group->members.size());
      const auto here = std::lower_bound(group->members.begin(), group->members.end(), rank);
      const auto next = here + 1 == group->members.end() ? group->members.begin() : here + 1;
      if (m > 1) {
        link(rank, *next, 2 * (m - 1) / m * model_);
      }
      return;
    }
    for (const Edge& edge : std::get<Neighbours>(row).out) {
      link(rank, edge.peer, model_);
    }
  }

 private:
  void link(Rank from, Rank to, double bytes) {
    link_peak_ = std::max(link_peak_, bytes);
    const std::size_t a = from.index() / per_node_;
    const std::size_t b = to.index() / per_node_;
    if (a != b) {
      cards_.sent[a] += bytes;
      cards_.received[b] += bytes;
    }
  }

  Cards& cards_;
  std::uint32_t per_node_;
  double model_;
  double& link_peak_;
};

double busiest(const Cards& cards) {
  return std::max(*std::max_element(cards.sent.begin(), cards.sent.end()),
                  *std::max_element(cards.received.begin(), cards.received.end()));
}

}  // namespace

Traffic traffic(const Schedule& schedule, const View& view, std::int64_t steps,
                std::uint32_t per_node, Bytes model) {
  const std::size_t nodes = (view.workers() + per_node - 1) / per_node;
  const std::vector<double> none(nodes, 0.0);
  Traffic result;
  Cards sum{none, none};
  for (std::int64_t t = 0; t < steps; ++t) {
    Cards cards{none, none};
    StepTraffic step(cards, per_node, static_cast<double>(model.value), result.link_peak);
    for (const Rank rank : view.live()) {
      step.add(rank, schedule.row(Step{t}, rank, view));
    }
    result.node_peak = std::max(result.node_peak, busiest(cards));
    for (std::size_t node = 0; node < nodes; ++node) {
      sum.sent[node] += cards.sent[node] / static_cast<double>(steps);
      sum.received[node] += cards.received[node] / static_cast<double>(steps);
    }
  }
  result.node_mean = busiest(sum);
  return result;
}

}  // namespace starling::topology
