#include "starling/workload/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "starling/base/error.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view what, const fs::path& path, int reason) {
  throw Error(ErrorCode::Environment, fmt::format("cannot {} {}: {}", what, path.string(),
                                                  std::generic_category().message(reason)));
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : number_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (number_ >= 0) {
      close(number_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// 0, or why not.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), std::min(bytes.size(), kMost));
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// Some file systems cannot reserve room, and some files (a pipe) cannot be synced.
int reserve(int descriptor, std::size_t bytes) {
  const bool done = bytes == 0 || fallocate(descriptor, 0, 0, static_cast<off_t>(bytes)) == 0;
  return done || errno != ENOSPC ? 0 : ENOSPC;
}
int sync(int descriptor) { return fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno; }

int write_beside(const fs::path& beside, const Pieces& pieces) {
  const Descriptor file(beside, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.number() < 0) {
    return errno;
  }
  std::size_t all = 0;
  for (const auto& piece : pieces) {
    all += piece.size();
  }
  int reason = reserve(file.number(), all);
  for (std::size_t i = 0; i < pieces.size() && reason == 0; ++i) {
    reason = write_all(file.number(), pieces[i]);
  }
  return reason == 0 ? sync(file.number()) : reason;
}

// Its entries are on disk. 0, or why not.
int sync_folder(const fs::path& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  return folder.number() < 0 ? errno : sync(folder.number());
}

}  // namespace

void write_durably(const fs::path& file, const Pieces& pieces) {
  const fs::path beside = file.string() + ".part";
  int reason = write_beside(beside, pieces);
  if (reason == 0 && std::rename(beside.c_str(), file.c_str()) != 0) {
    reason = errno;
  }
  if (reason != 0) {
    unlink(beside.c_str());
    fail("write", file, reason);
  }
}

void write_durably(const fs::path& file, std::string_view text) {
  write_durably(file, Pieces{std::as_bytes(std::span(text))});
}

void rename_durably(const fs::path& from, const fs::path& to) {
  int reason = sync_folder(from);
  if (reason == 0 && std::rename(from.c_str(), to.c_str()) != 0) {
    reason = errno;
  }
  if (reason == 0) {
    reason = sync_folder(to.parent_path());
  }
  if (reason != 0) {
    fail("write", to, reason);
  }
}

std::vector<std::byte> read_bytes(const fs::path& path) {
  const Descriptor file(path, O_RDONLY);
  struct stat facts{};
  if (file.number() < 0 || fstat(file.number(), &facts) != 0) {
    fail("read", path, errno);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(facts.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(file.number(), bytes.data() + done, bytes.size() - done);
    if (got == 0) {
      break;
    }
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      fail("read", path, errno);
    }
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace starling::workload
