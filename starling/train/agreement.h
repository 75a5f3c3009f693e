// Workers compare what must be the same on all of them.
#pragma once

#include <string>

#include "starling/train/assembly.h"

namespace starling::train {

// `description` is a list of lines. Throws Error{Mismatch} on every worker if one has another than
// the lowest living rank, naming that worker and the first line that differs. Collective.
void agree(Assembly& assembly, comm::Workers& workers, const std::string& description);

}  // namespace starling::train
