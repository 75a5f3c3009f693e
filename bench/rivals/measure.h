// Measures a rival, the same way for each of them.
//
// A repetition is a barrier, then an all-reduce that every rank times for itself; the repetition
// took as long as the slowest rank's. Of several methods the one with the smallest median of a few
// trials is measured. Rank 0 prints a line of JSON per size:
//
//   {"bytes":N,"seconds":[…],"cpu_seconds":X,"elapsed_seconds":Y,"method":"…"}
//
// cpu_seconds: user and system time of all ranks over all repetitions, elapsed_seconds: rank 0's
// time over the same; both include the barriers. "method" only where there is a choice.
#pragma once

#include "bench/rivals/plan.h"
#include "bench/rivals/rival.h"

namespace starling::rivals {

// The exit code: 1, and a line on stderr, if a last repetition's result was wrong on any rank.
int measure(const Plan& plan, Rival& rival);

}  // namespace starling::rivals
