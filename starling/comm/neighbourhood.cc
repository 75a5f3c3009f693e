#include "starling/comm/neighbourhood.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "starling/base/error.h"
#include "starling/comm/segments.h"

namespace starling::comm {
namespace {

void require_edges(const char* who, Rank self, const std::vector<topology::Edge>& edges) {
  for (std::size_t i = 0; i < edges.size(); ++i) {
    require(edges[i].peer != self, "{}: worker {} names itself as a neighbour", who, self);
    require(i == 0 || edges[i - 1].peer < edges[i].peer,
            "{}: neighbours of worker {} must be in rank order, each once; worker {} is not", who,
            self, edges[i].peer);
    require(std::isfinite(edges[i].weight), "{}: the weight between workers {} and {} is {}", who,
            self, edges[i].peer, edges[i].weight);
  }
}

}  // namespace

std::vector<Rank> members_of(Rank self, const topology::Neighbours& row) {
  std::vector<Rank> members = {self};
  for (const auto* edges : {&row.in, &row.out}) {
    for (const topology::Edge& edge : *edges) {
      members.push_back(edge.peer);
    }
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}

void require_row(const char* who, Rank self, const topology::Neighbours& row) {
  require_edges(who, self, row.in);
  require_edges(who, self, row.out);
  require(std::isfinite(row.self_weight), "{}: the weight of worker {} for itself is {}", who, self,
          row.self_weight);
}

std::vector<topology::Edge> send_order(Rank self, const topology::Neighbours& row) {
  std::vector<topology::Edge> order = row.out;
  const auto ahead = std::find_if(order.begin(), order.end(),
                                  [&](const topology::Edge& e) { return e.peer > self; });
  std::rotate(order.begin(), ahead, order.end());
  return order;
}

namespace {

class Flow {
 public:
  Flow(Operation& op, const topology::Neighbours& row, ConstBuffer in, Buffer out)
      : op_(op),
        row_(row),
        in_(in),
        out_(out),
        cut_(in.blob.size, 1, op.engine().options().chunk),
        piece_(std::min(cut_.chunk_bytes(), in.blob.size)),
        landing_(op.scratch(2 * row.in.size() * piece_)),
        incoming_(2 * row.in.size()),
        targets_(send_order(op.member(op.self()), row)) {}

  Task<void> run(Task<std::vector<double>> in_weights) {
    std::vector<double> weights;
    // Sources in rank order: this worker stands between its in-neighbours.
    const auto above = std::find_if(row_.in.begin(), row_.in.end(), [&](const topology::Edge& e) {
      return e.peer > op_.member(op_.self());
    });
    const std::size_t own = static_cast<std::size_t>(above - row_.in.begin());
    post(0);
    for (std::size_t q = 0; q < cut_.chunks(); ++q) {
      if (q + 1 < cut_.chunks()) {
        post(q + 1);
      }
      for (const topology::Edge& edge : targets_) {
        co_await op_.send(op_.position_of(edge.peer), static_cast<Slot>(q), slice(q));
      }
      std::vector<ConstBlob> terms(row_.in.size() + 1, slice(q));
      for (std::size_t i = 0; i < row_.in.size(); ++i) {
        co_await *incoming_[(q % 2) * row_.in.size() + i];
        terms[i < own ? i : i + 1] = place(q, i);
      }
      if (q == 0) {
        weights = co_await in_weights;
        weights.insert(weights.begin() + static_cast<std::ptrdiff_t>(own), row_.self_weight);
      }
      const Segments::Range r = cut_.chunk(0, q);
      op_.arithmetic().mix(in_.type, out_.blob.slice(r.begin, r.end), terms, weights);
      co_await op_.engine().yield();
    }
  }

 private:
  ConstBlob slice(std::size_t q) const {
    const Segments::Range r = cut_.chunk(0, q);
    return in_.blob.slice(r.begin, r.end);
  }
  // Where chunk q of in-neighbour i lands.
  Blob place(std::size_t q, std::size_t i) const {
    const std::size_t begin = ((q % 2) * row_.in.size() + i) * piece_;
    return landing_.slice(begin, begin + cut_.chunk(0, q).size());
  }
  void post(std::size_t q) {
    for (std::size_t i = 0; i < row_.in.size(); ++i) {
      incoming_[(q % 2) * row_.in.size() + i] = &op_.receive(
          op_.position_of(row_.in[i].peer), static_cast<Slot>(q), place(q, i), "its model");
    }
  }

  Operation& op_;
  const topology::Neighbours& row_;
  ConstBuffer in_;
  Buffer out_;
  Segments cut_;
  std::size_t piece_;
  Blob landing_;
  std::vector<Request*> incoming_;  // by parity of the chunk, by in-neighbour
  std::vector<topology::Edge> targets_;
};

}  // namespace

Task<void> flow(Operation& op, const topology::Neighbours& row,
                Task<std::vector<double>> in_weights, ConstBuffer in, Buffer out) {
  Flow all(op, row, in, out);
  co_await all.run(std::move(in_weights));
}

}  // namespace starling::comm
