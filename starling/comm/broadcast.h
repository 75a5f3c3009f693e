// One worker's buffer to all members.
#pragma once

#include "starling/base/task.h"
#include "starling/comm/buffer.h"
#include "starling/comm/engine.h"
#include "starling/comm/operation.h"
#include "starling/comm/report.h"

namespace starling::comm {

// `root` is a member; its `in` is copied to everyone's `out`, its own included. On other members
// `in` is not read, and only its length and type matter (a Buffer like `out` will do).
// Small: a binomial tree, ceil(log2 k) hops. Large: the root scatters segments and the members
// pass theirs on, chunk by chunk: no card carries more than B bytes each way.
Task<Report> broadcast(Engine& engine, Call call, Rank root, ConstBuffer in, Buffer out);

}  // namespace starling::comm
