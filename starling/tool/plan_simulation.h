// What a choice of the planner takes in virtual time: the engine's own protocols, on links as fast
// as the profile says that they are under such exchanges.
#pragma once

#include <cstdint>

#include "starling/model/plan.h"

namespace starling::tool {

// Seconds per step.
double simulate_choice(const model::Profile& profile, const model::Choice& choice,
                       std::uint64_t steps, std::uint64_t seed);

}  // namespace starling::tool
