#include "starling/workload/run_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "starling/base/folder_lock.h"
#include "starling/workload/durable_file.h"
#include "starling/workload/resume.h"
#include "tests/workload/temporary.h"

namespace starling::workload {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

template <typename Body>
std::string failure(Body body) {
  return error_of(ErrorCode::Environment, body);
}

// Where a test works, for a while.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& folder) : before_(fs::current_path()) {
    fs::current_path(folder);
  }
  ~WorkingFolder() { fs::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  fs::path before_;
};

TEST(RunFolder, NamesAreNewEachTime) {
  const TemporaryFolder temporary;
  const WorkingFolder here(temporary.path());
  std::set<fs::path> made;
  for (int i = 0; i < 4; ++i) {
    const fs::path folder = make_run_folder("", "wagma-mlp");
    EXPECT_TRUE(fs::is_directory(folder));
    EXPECT_EQ(folder.parent_path(), "runs");
    EXPECT_NE(folder.string().find("wagma-mlp"), std::string::npos);
    made.insert(folder);
  }
  EXPECT_EQ(made.size(), 4);
}

TEST(RunFolder, IsFoundFromWithin) {
  const TemporaryFolder temporary;
  const fs::path run = fs::canonical(temporary.path());
  const fs::path checkpoint = checkpoint_folder(checkpoints_of(run), 10);
  fs::create_directories(checkpoint);
  Manifest manifest;
  manifest.ranks = {0};
  write_json(checkpoint / kManifestFile, json_of(manifest));
  const auto expect_found = [&](const char* given) {
    const Resumption found = find_resumption(given);
    EXPECT_EQ(found.checkpoint, checkpoint) << given;
    EXPECT_EQ(found.run(), run) << given;
  };
  {
    const WorkingFolder here(run);
    for (const char* given : {".", "checkpoints", "checkpoints/", "checkpoints/step-0000000010"}) {
      expect_found(given);
    }
  }
  const WorkingFolder here(checkpoint);
  expect_found(".");
  expect_found("../..");
}

TEST(RunFolder, NothingIsOverwritten) {
  const TemporaryFolder temporary;
  const std::string wanted = (temporary.path() / "a" / "b").string();
  EXPECT_EQ(make_run_folder(wanted, ""), wanted);
  EXPECT_EQ(make_run_folder(wanted, ""), wanted);  // still empty
  write_json(fs::path(wanted) / "config.json", {{"a", 1}});
  EXPECT_NE(failure([&] { make_run_folder(wanted, ""); }).find("not overwritten"),
            std::string::npos);
  const std::string locked = (temporary.path() / "c").string();
  {
    const FolderLock lock(locked);
  }
  EXPECT_EQ(make_run_folder(locked, ""), locked);
  EXPECT_NE(failure([&] { make_run_folder(wanted + "/config.json", ""); }).find("config.json"),
            std::string::npos);
}

TEST(RunFolder, JsonIsThereWholeOrNotAtAll) {
  const TemporaryFolder temporary;
  const fs::path file = temporary.path() / "summary.json";
  write_json(file, {{"a", 1}});
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(file))["a"], 1);
  EXPECT_FALSE(fs::exists(file.string() + ".part"));
  EXPECT_NE(failure([&] { write_json(temporary.path() / "no" / "x.json", {}); }).find("No such"),
            std::string::npos);
}

// What it holds is on disk first, for which it must be a folder.
TEST(RunFolder, AFolderIsRenamedWithWhatItHolds) {
  const TemporaryFolder temporary;
  const fs::path from = temporary.path() / "a.partial";
  const fs::path to = temporary.path() / "a";
  std::ofstream(from) << "a file";
  EXPECT_NE(failure([&] { rename_durably(from, to); }).find("Not a directory"), std::string::npos);
  EXPECT_FALSE(fs::exists(to));
  fs::remove(from);
  fs::create_directories(from);
  write_durably(from / "held", "all of it");
  rename_durably(from, to);
  EXPECT_EQ(first_line(to / "held"), "all of it");
  EXPECT_FALSE(fs::exists(from));
}

TEST(RunFolder, AFullDiskIsSaid) {
  const TemporaryFolder temporary;
  const fs::path full = temporary.path() / "metrics-3.jsonl";
  fs::create_symlink("/dev/full", full);
  Metrics metrics(temporary.path(), Rank{3});
  testing::internal::CaptureStderr();
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(metrics.is_lost(), step > 0);
    metrics.write({{"step", step}});
    metrics.flush();
  }
  metrics.close();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            fmt::format("cannot write {}: No space left on device; training goes on without it\n",
                        full.string()));
  fs::create_symlink("/dev/full", temporary.path() / "summary.json.part");
  EXPECT_NE(failure([&] {
              write_json(temporary.path() / "summary.json", {{"a", 1}});
            }).find("No space left"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(temporary.path() / "summary.json"));
}

TEST(RunFolder, MetricsAreLines) {
  const TemporaryFolder temporary;
  Metrics metrics(temporary.path(), Rank{1});
  metrics.write({{"step", 5}, {"loss", 0.5}});
  metrics.close();
  EXPECT_EQ(first_line(temporary.path() / "metrics-1.jsonl"), R"({"step":5,"loss":0.5})");
}

}  // namespace
}  // namespace starling::workload
