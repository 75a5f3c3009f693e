// One step of push-sum (stochastic gradient push): numerators and weights flow along directed edges
// in shares that the sender decides; x / weight is the unbiased model.
#pragma once

#include "starling/base/task.h"
#include "starling/comm/buffer.h"
#include "starling/comm/engine.h"
#include "starling/comm/operation.h"
#include "starling/comm/report.h"
#include "starling/topology/neighbours.h"

namespace starling::comm {

struct Pushed {
  double weight = 0;  // the new push weight of this worker
  Report report;
};

// out = self_weight * in + sum of share_j * (in of j); the same for the weight. Worker j decides
// the share for each edge: row.out's weights and self_weight are this worker's shares and sum to 1;
// row.in names the senders, whose weights travel with their data (those in row.in are not read).
Task<Pushed> push_sum(Engine& engine, std::uint64_t id, topology::Neighbours row, double weight,
                      ConstBuffer in, Buffer out);

}  // namespace starling::comm
