// Nobody leaves before everybody has come.
#pragma once

#include "starling/base/task.h"
#include "starling/comm/engine.h"
#include "starling/comm/operation.h"
#include "starling/comm/report.h"

namespace starling::comm {

// Dissemination: ceil(log2 k) rounds of one small message each.
Task<Report> barrier(Engine& engine, Call call);

}  // namespace starling::comm
