#include "starling/tool/line_printer.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <system_error>

namespace starling::tool {
namespace {

// Of the terminal's own palette: legible on dark and on light ground.
constexpr int kColours[] = {36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91};

bool wants_colour(int descriptor) {
  const char* refused = std::getenv("NO_COLOR");
  return (refused == nullptr || *refused == '\0') && isatty(descriptor) == 1;
}

// Whoever prints there has nowhere to say so, and no reason to stop.
bool is_of_the_disk(int reason) { return reason == ENOSPC || reason == EDQUOT || reason == EIO; }

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // somebody made it non-blocking
      pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
      poll(&ready, 1, -1);
    } else if (is_of_the_disk(errno)) {
      return;
    } else if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "cannot print what workers write");
    }
  }
}

}  // namespace

LinePrinter::LinePrinter(bool has_prefixes)
    : has_prefixes_(has_prefixes),
      has_colour_{wants_colour(STDOUT_FILENO), wants_colour(STDERR_FILENO)} {}

void LinePrinter::print(std::size_t worker, launch::Stream stream, std::string_view line) {
  const bool is_out = stream == launch::Stream::Out;
  text_.clear();
  if (has_prefixes_ && has_colour_[is_out ? 0 : 1]) {
    fmt::format_to(std::back_inserter(text_), "\x1b[{}m[{}]\x1b[0m ",
                   kColours[worker % std::size(kColours)], worker);
  } else if (has_prefixes_) {
    fmt::format_to(std::back_inserter(text_), "[{}] ", worker);
  }
  text_.append(line);
  text_ += '\n';
  write_all(is_out ? STDOUT_FILENO : STDERR_FILENO, text_);
}

}  // namespace starling::tool
