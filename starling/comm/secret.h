// The secret of a job keeps jobs apart that meet at one place by mistake, and strangers out. It
// travels in clear: it is no defence against somebody who listens on the wire.
#pragma once

#include <string>

namespace starling::comm {

// 32 hexadecimal digits from the kernel's random numbers.
std::string draw_secret();

}  // namespace starling::comm
