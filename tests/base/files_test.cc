// A folder's lock, and files of lines.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "starling/base/error.h"
#include "starling/base/folder_lock.h"
#include "starling/base/line_file.h"

namespace starling {
namespace {

namespace fs = std::filesystem;
using Hold = FolderLock::Hold;

fs::path fresh(const std::string& name) {
  fs::path path = fs::path(testing::TempDir()) / fmt::format("starling-{}-{}", name, getpid());
  fs::remove_all(path);
  return path;
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

template <typename Body>
std::string error_of(ErrorCode code, Body body) {
  try {
    body();
    return "no error";
  } catch (const Error& e) {
    EXPECT_EQ(name_of(e.code()), name_of(code)) << e.what();
    return e.what();
  }
}

TEST(FolderLock, IsHeldAloneOrTogether) {
  const fs::path folder = fresh("locked");
  const auto refused = [&](Hold hold) {
    return error_of(ErrorCode::Input, [&] { const FolderLock lock(folder, hold); });
  };
  const std::string held = "another run is going on in " + folder.string();
  std::optional<FolderLock> first(std::in_place, folder);
  EXPECT_EQ(refused(Hold::Alone), held);
  EXPECT_EQ(refused(Hold::Together), held);
  first->share();
  std::optional<FolderLock> second(std::in_place, folder, Hold::Together);
  first.reset();
  EXPECT_EQ(refused(Hold::Alone), held);
  EXPECT_EQ(refused(Hold::Together), "no error");
  second.reset();
  EXPECT_EQ(refused(Hold::Alone), "no error");
  EXPECT_EQ(
      error_of(ErrorCode::Environment, [&] { const FolderLock lock(folder / FolderLock::kFile); })
          .find("cannot make the folder"),
      0U);
  fs::remove_all(folder);
}

TEST(LineFile, GrowsAtItsEnd) {
  const fs::path path = fresh("lines");
  LineFile(path, LineFile::Begin::Anew).write("a\nb\n");
  LineFile again(path, LineFile::Begin::AtTheEnd);
  again.write("c\n");
  EXPECT_EQ(text_of(path), "a\nb\nc\n");
  again.close();
  LineFile(path, LineFile::Begin::Anew).write("d\n");
  EXPECT_EQ(text_of(path), "d\n");
  fs::remove(path);
}

// A limit on the size of files, in place of a full disk.
TEST(LineFile, EndsAfterAWholeLineWhenThereIsNoRoomForMore) {
  const fs::path path = fresh("limited");
  LineFile file(path, LineFile::Begin::Anew);
  file.write("first\n");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit limited = before;
  limited.rlim_cur = 20;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limited);
  const std::string said =
      error_of(ErrorCode::Environment, [&] { file.write("second\nthird, too long\n"); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(said, fmt::format("cannot write {}: File too large", path.string()));
  EXPECT_EQ(text_of(path), "first\nsecond\n");
  fs::remove(path);
}

TEST(LineFile, WhatCannotBeWrittenIsNamed) {
  EXPECT_EQ(error_of(ErrorCode::Environment,
                     [] { LineFile("/dev/full", LineFile::Begin::Anew).write("a\n"); }),
            "cannot write /dev/full: No space left on device");
  EXPECT_EQ(error_of(ErrorCode::Environment,
                     [] { const LineFile file("/nowhere/a", LineFile::Begin::Anew); }),
            "cannot write /nowhere/a: No such file or directory");
}

}  // namespace
}  // namespace starling
