#include "starling/launch/open_files.h"

#include <algorithm>

#include "starling/base/error.h"
#include "starling/launch/descriptor.h"

namespace starling::launch {
namespace {

constexpr rlim_t kPerWorker = 3;  // its stdout, its stderr, its end
constexpr rlim_t kBesides = 100;  // what this process has open, and what a start takes

}  // namespace

OpenFiles::OpenFiles(std::size_t workers) {
  checked(getrlimit(RLIMIT_NOFILE, &previous_), "cannot read the limit of open files");
  const rlim_t needed = kPerWorker * workers + kBesides;
  require(needed <= previous_.rlim_max,
          "{} workers need {} open files, but only {} are allowed (ulimit -Hn)", workers, needed,
          previous_.rlim_max);
  const rlimit raised{.rlim_cur = std::max(needed, previous_.rlim_cur),
                      .rlim_max = previous_.rlim_max};
  checked(setrlimit(RLIMIT_NOFILE, &raised), "cannot raise the limit of open files");
}

OpenFiles::~OpenFiles() { setrlimit(RLIMIT_NOFILE, &previous_); }

}  // namespace starling::launch
