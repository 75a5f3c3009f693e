#include "starling/comm/streaming.h"

namespace starling::comm {

Streaming::Streaming(Streamed& streamed, Rounds& rounds, std::vector<std::size_t> ends,
                     bool rounded)
    : streamed_(streamed), rounds_(rounds), ends_(std::move(ends)), rounded_(rounded) {}

Task<void> Streaming::until_there(std::size_t part, Version v) {
  const Time asked = rounds_.engine().now();
  co_await rounds_.until([this, part, v] { return streamed_.is_there(part, v); });
  waited_ += rounds_.engine().now() - asked;
}

void Streaming::publish(std::size_t part, Version v) {
  streamed_.publish(part, v);
  if (part == 0) {
    rounds_.arrived(v);
  }
}

}  // namespace starling::comm
