// starling data as a user runs it.
#include "starling/workload/data_command.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tests/workload/temporary.h"

namespace starling::workload {
namespace {

std::string output_of(const std::string& arguments) {
  CLI::App app;
  add_data_command(app);
  testing::internal::CaptureStdout();
  try {
    app.parse("data " + arguments);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

TEST(DataCommand, ListsWhatIsThereAndHowToHaveTheRest) {
  const TemporaryFolder cache;
  const TemporaryVariable data("STARLING_DATA", nullptr);
  const TemporaryVariable home("XDG_CACHE_HOME", cache.path().c_str());
  const std::string folder = (cache.path() / "starling" / "cifar10").string();
  EXPECT_EQ(output_of("list"),
            "fashion-mnist  /usr/share/datasets/fashion-mnist\n"
            "cifar10        not in " +
                folder + "; run: starling data cifar10\n");
  const auto json = nlohmann::json::parse(output_of("list --json"));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["name"], "fashion-mnist");
  EXPECT_EQ(json[0]["there"], true);
  EXPECT_EQ(json[1]["name"], "cifar10");
  EXPECT_EQ(json[1]["there"], false);
  EXPECT_EQ(json[1]["folder"], folder);
  EXPECT_EQ(json[1]["command"], "starling data cifar10");
}

TEST(DataCommand, FetchesWhereItIsTold) {
  const TemporaryFolder to;
  const TemporaryVariable no_programs("PATH", to.path().c_str());
  testing::internal::CaptureStderr();
  EXPECT_EQ(error_of(ErrorCode::Environment,
                     [&] { output_of("cifar10 --to " + (to.path() / "x").string()); }),
            "npm is not installed; run: apt-get install npm");
  const std::string progress = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(progress.starts_with((to.path() / "x" / "cifar10").string())) << progress;
}

TEST(DataCommand, WantsACommand) { EXPECT_THROW(output_of(""), CLI::ParseError); }

}  // namespace
}  // namespace starling::workload
