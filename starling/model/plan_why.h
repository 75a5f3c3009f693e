// Why a plan recommends what it does, in words.
#pragma once

#include <string>
#include <vector>

#include "starling/model/plan.h"

namespace starling::model {

// Requires: choices in order, all-reduce and the recommended one known.
std::vector<std::string> why(const Plan& plan);

}  // namespace starling::model
