// base-k: the Base-(k+1) Graph of the live workers (base_graph.h): exact after rounds() steps from
// step 0, for any number of workers and any K.
#include <algorithm>

#include "starling/base/error.h"
#include "starling/topology/base_graph.h"
#include "starling/topology/makers.h"

namespace starling::topology {
namespace {

Row row_of(const BaseGraph& graph, std::uint32_t round, Rank rank, const View& view) {
  const BaseGraph::Move move = graph.move(round, view.position(rank));
  if (!move.exchange) {
    std::vector<Rank> members(move.size);
    for (std::uint32_t i = 0; i < move.size; ++i) {
      members[i] = view.at(move.first + i * move.stride);
    }
    return uniform_group(std::move(members));
  }
  Neighbours row{1 - move.size * move.weight, {}, {}};
  for (std::uint32_t i = 0; i < move.size; ++i) {
    row.in.push_back({view.at(move.first + i * move.stride), move.weight});
  }
  row.out = row.in;
  return row;
}

class BaseK : public Schedule {
 private:
  // The graph made for all workers; after a loss one for the survivors, at a few microseconds.
  template <typename Use>
  auto with_graph(const View& view, Use use) const {
    return view.count() == graph_.workers() ? use(graph_) : use(BaseGraph(view.count(), peers_));
  }

 public:
  BaseK(std::uint32_t workers, std::uint32_t peers) : peers_(peers), graph_(workers, peers) {}

  Row row(Step step, Rank rank, const View& view) const override {
    check(view.alive(rank), "rank {} is not in the view", rank);
    return with_graph(view, [&](const BaseGraph& graph) {
      return graph.rounds() == 0
                 ? Row(uniform_group({rank}))
                 : row_of(graph, static_cast<std::uint32_t>(step.value % graph.rounds()), rank,
                          view);
    });
  }
  std::optional<std::int64_t> period(const View& view) const override {
    return with_graph(view, [](const BaseGraph& graph) { return std::max(graph.rounds(), 1u); });
  }

 private:
  std::uint32_t peers_;
  BaseGraph graph_;
};

}  // namespace

std::unique_ptr<Schedule> make_base_k(const ScheduleOptions& options) {
  require(options.peers >= 1, "0 peers: base-k needs 1 or more");
  return std::make_unique<BaseK>(options.workers, options.peers);
}

}  // namespace starling::topology
