// Meeting over sockets, of one machine or of many. Worker 0 listens at job.meet (door.h), the
// others connect, again and again until it is there, and introduce themselves (introduction.h).
// When all have come they are welcomed. In an exchange everyone sends its bytes to worker 0, which
// sends all of them to everyone (connection.h has the messages). Whatever goes wrong worker 0 tells
// all, so that all throw the same error. If worker 0 itself ends, the others see their connections
// end.
//
// The secret of job.h keeps jobs apart and strangers out. It travels in clear: it is no defence
// against somebody who listens on the wire.
//
// Each is used by one thread at a time.
#pragma once

#include <memory>

#include "starling/comm/rendezvous.h"

namespace starling::comm {

// Requires: job.rank is 0, for the host, or not, for a guest; job.size > 1.
std::unique_ptr<Rendezvous> host_rendezvous(const Job& job, Duration patience);
std::unique_ptr<Rendezvous> join_rendezvous(const Job& job, Duration patience);

}  // namespace starling::comm
