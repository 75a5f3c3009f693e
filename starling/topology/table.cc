#include "starling/topology/table.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "starling/base/error.h"

namespace starling::topology {
namespace {

using SparseRows = std::vector<std::map<std::uint32_t, double>>;

SparseRows sparse_rows(const EdgeStep& step) {
  SparseRows rows(step.rows.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    rows[i][i] = step.rows[i].self_weight;
    for (const Edge& edge : step.rows[i].in) {
      rows[i][edge.peer.value] = edge.weight;
    }
  }
  return rows;
}

// Takes worker d out of all rows. A worker that keeps all it gets (w_dd = 1) passes nothing on:
// who would have taken from it keeps its own.
void eliminate(SparseRows& rows, std::uint32_t d) {
  const std::map<std::uint32_t, double> lost = std::exchange(rows[d], {});
  const double passed_on = 1 - lost.at(d);
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const auto found = rows[i].find(d);
    if (found == rows[i].end()) {
      continue;
    }
    const double weight = found->second;
    rows[i].erase(found);
    if (passed_on < 1e-12) {
      rows[i][i] += weight;
      continue;
    }
    for (const auto& [j, share] : lost) {
      if (j != d) {
        rows[i][j] += weight * share / passed_on;
      }
    }
  }
}

Row surviving_row(const EdgeStep& step, Rank rank, const View& view) {
  SparseRows rows = sparse_rows(step);
  for (std::uint32_t d = 0; d < rows.size(); ++d) {
    if (!view.alive(Rank{d})) {
      eliminate(rows, d);
    }
  }
  Neighbours row{rows[rank.index()][rank.value], {}, {}};
  for (const auto& [peer, weight] : rows[rank.index()]) {
    if (peer != rank.value && weight > 0) {
      row.in.push_back({Rank{peer}, weight});
    }
  }
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const auto found = rows[i].find(rank.value);
    if (i != rank.value && found != rows[i].end() && found->second > 0) {
      row.out.push_back({Rank{i}, found->second});
    }
  }
  return row;
}

Row surviving_group(const Group& group, const View& view) {
  std::vector<Rank> members;
  std::copy_if(group.members.begin(), group.members.end(), std::back_inserter(members),
               [&](Rank member) { return view.alive(member); });
  if (members.size() == 1 || group.is_uniform()) {
    return uniform_group(std::move(members));
  }
  return Group{std::move(members), group.self_weight};
}

class Table : public Schedule {
 public:
  Table(std::uint32_t workers, std::vector<TableStep> steps)
      : workers_(workers), steps_(std::move(steps)) {}

  Row row(Step step, Rank rank, const View& view) const override {
    check(view.workers() == workers_ && view.alive(rank), "rank {} is not in the view", rank);
    const TableStep& now = steps_[static_cast<std::size_t>(step.value) % steps_.size()];
    if (const auto* groups = std::get_if<GroupStep>(&now)) {
      return surviving_group(groups->groups[groups->group_of[rank.index()]], view);
    }
    const auto& edges = std::get<EdgeStep>(now);
    return view.count() == workers_ ? Row(edges.rows[rank.index()])
                                    : surviving_row(edges, rank, view);
  }
  std::optional<std::int64_t> period(const View&) const override {
    return static_cast<std::int64_t>(steps_.size());
  }

 private:
  std::uint32_t workers_;
  std::vector<TableStep> steps_;
};

}  // namespace

std::unique_ptr<Schedule> make_table(std::uint32_t workers, std::vector<TableStep> steps) {
  check(!steps.empty(), "a table without steps");
  return std::make_unique<Table>(workers, std::move(steps));
}

}  // namespace starling::topology
