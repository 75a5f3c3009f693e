// Cuts the bytes of one stream into lines. Any byte but the newline is part of a line.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace starling::launch {

// What is longer is cut into lines, each of this size or a little more, so that a worker that never
// ends its line does not fill our memory.
inline constexpr std::size_t kLongestLine = std::size_t{8} << 20;

class Lines {
 public:
  using Sink = std::function<void(std::string_view line)>;

  // Hands over the lines that `bytes` completes.
  void take(std::string_view bytes, const Sink& sink);
  // Hands over the line that has begun, if one has.
  void finish(const Sink& sink);

 private:
  std::string begun_;
};

}  // namespace starling::launch
