// Copies bytes, past the caches if asked. Call it as kernels::copy: unqualified, arguments from std
// bring in std::copy as well.
#pragma once

#include <cstddef>
#include <span>

#include "starling/kernels/store.h"

namespace starling::kernels {

// Requires: equal sizes; the two are the same memory or do not overlap. Any alignment.
void copy(std::span<std::byte> into, std::span<const std::byte> from, Store store = Store::Cached);

}  // namespace starling::kernels
