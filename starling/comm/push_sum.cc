#include "starling/comm/push_sum.h"

#include <cmath>
#include <utility>
#include <vector>

#include "starling/base/error.h"
#include "starling/comm/neighbourhood.h"

namespace starling::comm {
namespace {

// What travels ahead of the data.
struct Share {
  double share = 0;
  double weight = 0;
};

constexpr Slot kShare = 1 << 27;

Blob bytes_of(Share& share) { return {reinterpret_cast<std::byte*>(&share), sizeof(Share)}; }

Task<void> body(Operation& op, const topology::Neighbours& row, double& weight, ConstBuffer in,
                Buffer out) {
  require_buffers("push-sum exchange", in, out);
  require_row("push-sum exchange", op.engine().rank(), row);
  double total = row.self_weight;
  for (const topology::Edge& edge : row.out) {
    total += edge.weight;
  }
  require(std::abs(total - 1) < 1e-9, "push-sum exchange: the shares of worker {} sum to {}, not 1",
          op.engine().rank(), total);

  std::vector<Share> theirs(row.in.size());
  std::vector<Request*> incoming;
  for (std::size_t i = 0; i < row.in.size(); ++i) {
    incoming.push_back(
        &op.receive(op.position_of(row.in[i].peer), kShare, bytes_of(theirs[i]), "its push weight"));
  }
  for (const topology::Edge& edge : row.out) {
    Share mine{edge.weight, weight};
    co_await op.send(op.position_of(edge.peer), kShare, bytes_of(mine));
  }
  std::vector<double> shares;
  double sum = row.self_weight * weight;
  for (std::size_t i = 0; i < row.in.size(); ++i) {
    co_await *incoming[i];
    shares.push_back(theirs[i].share);
    sum += theirs[i].share * theirs[i].weight;
  }
  co_await flow(op, row, std::move(shares), in, out);
  weight = sum;
}

}  // namespace

Task<Pushed> push_sum(Engine& engine, std::uint64_t id, topology::Neighbours row, double weight,
                      ConstBuffer in, Buffer out) {
  const std::vector<Rank> members = members_of(engine.rank(), row);
  Operation op(engine, {.id = id, .members = members},
               {.elements = in.elements(), .kind = Kind::PushSum, .type = in.type},
               Operation::Reach::Neighbours);
  Pushed result;
  result.weight = weight;
  result.report = co_await op.run(body(op, row, result.weight, in, out));
  co_return result;
}

}  // namespace starling::comm
