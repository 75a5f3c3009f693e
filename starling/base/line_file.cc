#include "starling/base/line_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "starling/base/error.h"

namespace starling {

LineFile::LineFile(std::filesystem::path path, Begin begin)
    : path_(std::move(path)),
      descriptor_(open(
          path_.c_str(),
          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (begin == Begin::Anew ? O_TRUNC : 0), 0666)) {
  if (descriptor_ < 0) {
    fail(errno);
  }
  size_ = std::max<std::int64_t>(0, lseek(descriptor_, 0, SEEK_END));
}

LineFile::~LineFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void LineFile::write(std::string_view lines) {
  std::size_t done = 0;
  while (done < lines.size()) {
    const ssize_t written = ::write(descriptor_, lines.data() + done, lines.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      const int reason = errno;
      const std::size_t whole = lines.substr(0, done).rfind('\n') + 1;  // none: 0
      static_cast<void>(!ftruncate(descriptor_, size_ + static_cast<std::int64_t>(whole)));
      fail(reason);
    }
  }
  size_ += static_cast<std::int64_t>(lines.size());
}

void LineFile::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    fail(errno);
  }
}

void LineFile::fail(int reason) const {
  throw Error(ErrorCode::Environment, fmt::format("cannot write {}: {}", path_.string(),
                                                  std::generic_category().message(reason)));
}

}  // namespace starling
