#include "starling/base/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "starling/base/error.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view what, const fs::path& path, const std::string& why) {
  throw Error(ErrorCode::Environment, fmt::format("cannot {} {}: {}", what, path.string(), why));
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder, Hold how) : folder_(folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error)) {
    fail("make the folder", folder,
         error ? error.message() : "there is a file of that name already");
  }
  const fs::path file = folder / kFile;
  descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    fail("write", file, std::generic_category().message(errno));
  }
  try {
    hold(how == Hold::Alone ? LOCK_EX : LOCK_SH);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

FolderLock::~FolderLock() { close(descriptor_); }

void FolderLock::share() { hold(LOCK_SH); }

void FolderLock::hold(int how) {
  const bool is_held = flock(descriptor_, how | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  require(!is_held, "another run is going on in {}", folder_.string());
}

}  // namespace starling
