// What neighbour exchange and push-sum share: an operation among a worker and its neighbours, and
// the flow of the payload through it.
#pragma once

#include <vector>

#include "starling/comm/buffer.h"
#include "starling/comm/operation.h"
#include "starling/topology/neighbours.h"

namespace starling::comm {

// The worker itself and all its neighbours, in rank order.
std::vector<Rank> members_of(Rank self, const topology::Neighbours& row);

// Throws Error{Input} unless edges are in rank order, each peer once, not the worker itself, and
// weights are finite.
void require_row(const char* who, Rank self, const topology::Neighbours& row);

// row.out in the order in which to send: everyone begins with whoever is next ahead of it, so that
// cards are shared evenly.
std::vector<topology::Edge> send_order(Rank self, const topology::Neighbours& row);

// Sends `in` to row.out, receives from row.in and writes the mix to `out`, chunk by chunk.
// `in_weights` gives one weight per row.in; it is awaited when the first chunk has come.
Task<void> flow(Operation& op, const topology::Neighbours& row,
                Task<std::vector<double>> in_weights, ConstBuffer in, Buffer out);

}  // namespace starling::comm
