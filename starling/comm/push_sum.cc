#include "starling/comm/push_sum.h"

#include <cmath>
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

// Sends out this worker's shares; awaited, gives those of its in-neighbours and sets the new
// weight.
class Shares {
 public:
  Shares(Operation& op, const topology::Neighbours& row)
      : op_(op), row_(row), theirs_(row.in.size()) {
    for (std::size_t i = 0; i < row.in.size(); ++i) {
      incoming_.push_back(&op.receive(op.position_of(row.in[i].peer), kShare, bytes_of(theirs_[i]),
                                      "its push weight"));
    }
  }

  Task<void> send(double weight) {
    for (const topology::Edge& edge : send_order(op_.member(op_.self()), row_)) {
      Share mine{edge.weight, weight};
      co_await op_.send(op_.position_of(edge.peer), kShare, bytes_of(mine));
    }
  }

  Task<std::vector<double>> collect(double& weight) {
    std::vector<double> shares;
    double sum = row_.self_weight * weight;
    for (std::size_t i = 0; i < row_.in.size(); ++i) {
      co_await *incoming_[i];
      shares.push_back(theirs_[i].share);
      sum += theirs_[i].share * theirs_[i].weight;
    }
    weight = sum;
    co_return shares;
  }

 private:
  Operation& op_;
  const topology::Neighbours& row_;
  std::vector<Share> theirs_;
  std::vector<Request*> incoming_;
};

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
  require(std::isfinite(weight), "push-sum exchange: the push weight of worker {} is {}",
          op.engine().rank(), weight);
  Shares shares(op, row);
  co_await shares.send(weight);
  co_await flow(op, row, shares.collect(weight), in, out);
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
