// How a kernel writes its result.
#pragma once

namespace starling::kernels {

enum class Store {
  Cached,     // ordinary stores: the result is read again soon, by this core
  Streaming,  // past the caches, without reading the line first: the result is large, or another
              // process reads it. Complete (fenced) when the kernel returns.
};

}  // namespace starling::kernels
