#include "starling/tool/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

namespace starling::tool {

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (terminal_) {
    fmt::print(stderr, "\r\033[K");
  }
}

void ProgressLine::show(const std::string& text) {
  if (terminal_) {
    fmt::print(stderr, "\r\033[K{}", text);
  }
}

}  // namespace starling::tool
