#include "starling/comm/neighbour_exchange.h"

#include <vector>

#include "starling/comm/neighbourhood.h"

namespace starling::comm {
namespace {

Task<std::vector<double>> weights_of(const topology::Neighbours& row) {
  std::vector<double> weights;
  for (const topology::Edge& edge : row.in) {
    weights.push_back(edge.weight);
  }
  co_return weights;
}

Task<void> body(Operation& op, const topology::Neighbours& row, ConstBuffer in, Buffer out) {
  require_buffers("neighbour exchange", in, out);
  require_row("neighbour exchange", op.engine().rank(), row);
  co_await flow(op, row, weights_of(row), in, out);
}

}  // namespace

Task<Report> neighbour_exchange(Engine& engine, std::uint64_t id, topology::Neighbours row,
                                ConstBuffer in, Buffer out) {
  const std::vector<Rank> members = members_of(engine.rank(), row);
  Operation op(engine, {.id = id, .members = members},
               {.elements = in.elements(), .kind = Kind::NeighbourExchange, .type = in.type},
               Operation::Reach::Neighbours);
  co_return co_await op.run(body(op, row, in, out));
}

}  // namespace starling::comm
