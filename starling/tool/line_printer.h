// Prints what workers write, line by line, so that lines of different workers never mix.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "starling/launch/launch.h"

namespace starling::tool {

class LinePrinter {
 public:
  // Prefixes say whose line it is: "[3] text". They have a colour for each worker where they go to
  // a terminal, unless NO_COLOR is set and not empty.
  explicit LinePrinter(bool has_prefixes);

  // Writes the line and a newline at once to stdout or stderr. On a full disk, or one that fails,
  // it is lost. Throws std::system_error if nobody reads it any more.
  void print(std::size_t worker, launch::Stream stream, std::string_view line);

 private:
  bool has_prefixes_;
  bool has_colour_[2];
  std::string text_;
};

}  // namespace starling::tool
