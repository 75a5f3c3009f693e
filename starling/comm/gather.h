// Everyone's record, on everyone: small things that members of a group tell each other.
#pragma once

#include <cstddef>
#include <span>

#include "starling/base/task.h"
#include "starling/comm/engine.h"
#include "starling/comm/operation.h"
#include "starling/comm/report.h"

namespace starling::comm {

// `records` holds one record per member, in rank order, all of the same length; the own one is
// filled in, the others are when this returns. Dissemination: ceil(log2 k) rounds of one message.
Task<Report> gather(Engine& engine, Call call, std::span<std::byte> records);

// The same inside another operation, in slots from `slot` on.
Task<void> gather_records(Operation& op, Slot slot, std::span<std::byte> records);

}  // namespace starling::comm
