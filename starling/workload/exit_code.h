// How a program ends that something was thrown in.
#pragma once

#include <exception>

namespace starling::workload {

// Says it in one line on stderr, unless another worker has; returns the exit code: 2 if the input
// is wrong, else 1.
int report(const std::exception_ptr& failure);

}  // namespace starling::workload
