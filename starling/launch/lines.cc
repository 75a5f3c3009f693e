#include "starling/launch/lines.h"

#include <utility>

namespace starling::launch {

void Lines::take(std::string_view bytes, const Sink& sink) {
  for (std::size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos;) {
    if (begun_.empty()) {
      sink(bytes.substr(0, end));
    } else {
      begun_.append(bytes.substr(0, end));
      finish(sink);
    }
    bytes.remove_prefix(end + 1);
  }
  begun_.append(bytes);
  if (begun_.size() >= kLongestLine) {
    finish(sink);
  }
}

void Lines::finish(const Sink& sink) {
  if (!begun_.empty()) {
    sink(std::exchange(begun_, {}));
  }
}

}  // namespace starling::launch
