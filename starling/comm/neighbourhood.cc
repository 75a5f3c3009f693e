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

Task<void> flow(Operation& op, const topology::Neighbours& row, std::vector<double> in_weights,
                ConstBuffer in, Buffer out) {
  const Segments cut(in.blob.size, 1, op.engine().options().chunk);
  // Sources in rank order: this worker stands between its in-neighbours.
  const auto above = std::find_if(row.in.begin(), row.in.end(), [&](const topology::Edge& e) {
    return e.peer > op.member(op.self());
  });
  const std::size_t own = static_cast<std::size_t>(above - row.in.begin());
  std::vector<double> weights = std::move(in_weights);
  weights.insert(weights.begin() + static_cast<std::ptrdiff_t>(own), row.self_weight);
  const std::size_t piece = std::min(cut.chunk_bytes(), in.blob.size);
  const Blob landing = op.scratch(2 * row.in.size() * piece);
  std::vector<Request*> incoming(2 * row.in.size());
  const auto place = [&](std::size_t q, std::size_t i) {
    const std::size_t begin = ((q % 2) * row.in.size() + i) * piece;
    return landing.slice(begin, begin + cut.chunk(0, q).size());
  };
  const auto post = [&](std::size_t q) {
    for (std::size_t i = 0; i < row.in.size(); ++i) {
      incoming[(q % 2) * row.in.size() + i] =
          &op.receive(op.position_of(row.in[i].peer), static_cast<Slot>(q), place(q, i),
                      "its model");
    }
  };
  const auto slice = [&](std::size_t q) {
    const Segments::Range r = cut.chunk(0, q);
    return in.blob.slice(r.begin, r.end);
  };

  post(0);
  for (std::size_t q = 0; q < cut.chunks(); ++q) {
    if (q + 1 < cut.chunks()) {
      post(q + 1);
    }
    for (const topology::Edge& edge : row.out) {
      co_await op.send(op.position_of(edge.peer), static_cast<Slot>(q), slice(q));
    }
    std::vector<ConstBlob> terms(row.in.size() + 1);
    for (std::size_t i = 0; i < row.in.size(); ++i) {
      co_await *incoming[(q % 2) * row.in.size() + i];
      terms[i < own ? i : i + 1] = place(q, i);
    }
    terms[own] = slice(q);
    const Segments::Range r = cut.chunk(0, q);
    op.arithmetic().mix(in.type, out.blob.slice(r.begin, r.end), terms, weights);
    co_await op.engine().yield();
  }
}

}  // namespace starling::comm
