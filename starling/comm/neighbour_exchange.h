// Weighted averaging with neighbours in any graph, directed or not: every worker has a row of its
// own. Many disjoint or overlapping neighbourhoods at once; only neighbours need to agree.
#pragma once

#include "starling/base/task.h"
#include "starling/comm/buffer.h"
#include "starling/comm/engine.h"
#include "starling/comm/operation.h"
#include "starling/comm/report.h"
#include "starling/topology/neighbours.h"

namespace starling::comm {

// out = self_weight * in + sum over row.in of weight_j * (in of j), added by the fixed tree over
// the sources in rank order. `in` goes to everyone in row.out. Weights are the receiver's. Cost: 1
// hop; max(in, out) * B bytes; extra memory: 2 chunks per in-neighbour.
Task<Report> neighbour_exchange(Engine& engine, std::uint64_t id, topology::Neighbours row,
                                ConstBuffer in, Buffer out);

}  // namespace starling::comm
