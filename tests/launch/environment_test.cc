#include "starling/launch/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

namespace starling::launch {
namespace {

const Identity kIdentity = {"unix:@starling-12", "34"};

TEST(Environment, AnIdentityIsNewEachTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    const Identity identity = make_identity();
    EXPECT_TRUE(identity.meet.starts_with("unix:@starling-")) << identity.meet;
    EXPECT_EQ(identity.secret.size(), 32u);
    EXPECT_EQ(identity.secret.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(seen.insert(identity.meet).second);
    EXPECT_TRUE(seen.insert(identity.secret).second);
  }
}

TEST(Environment, ThreadsShareTheCores) {
  const auto threads = [](std::size_t workers, std::size_t cores) {
    return job_environment({}, {}, kIdentity, workers, cores).at("OMP_NUM_THREADS");
  };
  EXPECT_EQ(threads(1, 8), "8");
  EXPECT_EQ(threads(3, 8), "2");
  EXPECT_EQ(threads(8, 8), "1");
  EXPECT_EQ(threads(64, 8), "1");
  EXPECT_GE(usable_cores(), 1u);
}

TEST(Environment, WhatTheUserSetIsKept) {
  const std::pair<std::string, std::string> extra[] = {{"HOME", "/nest"}, {"MKL_NUM_THREADS", "9"}};
  const Environment job =
      job_environment({{"OMP_NUM_THREADS", "7"}, {"HOME", "/"}, {"MALLOC_TRIM_THRESHOLD_", "5"}},
                      extra, kIdentity, 2, 8);
  EXPECT_EQ(job.at("OMP_NUM_THREADS"), "7");
  EXPECT_EQ(job.at("MKL_NUM_THREADS"), "9");
  EXPECT_EQ(job.at("OPENBLAS_NUM_THREADS"), "4");
  EXPECT_EQ(job.at("MALLOC_TRIM_THRESHOLD_"), "5");
  EXPECT_EQ(job.at("MALLOC_MMAP_THRESHOLD_"), "1073741824");
  EXPECT_EQ(job.at("HOME"), "/nest");
}

TEST(Environment, WhoAWorkerIsCannotBeOverridden) {
  const std::pair<std::string, std::string> extra[] = {
      {"STARLING_RANK", "9"}, {"STARLING_SIZE", "9"}, {"STARLING_SECRET", "known"}};
  const Environment job =
      job_environment({{"STARLING_MEET", "tcp:elsewhere:1"}}, extra, kIdentity, 4, 8);
  const std::vector<std::string> entries = worker_environment(job, 3);
  for (const char* entry : {"STARLING_RANK=3", "STARLING_SIZE=4", "STARLING_MEET=unix:@starling-12",
                            "STARLING_SECRET=34"}) {
    EXPECT_EQ(std::count(entries.begin(), entries.end(), entry), 1) << entry;
  }
  const auto is_ours = [](const std::string& entry) { return entry.starts_with("STARLING_"); };
  EXPECT_EQ(std::count_if(entries.begin(), entries.end(), is_ours), 4);
}

TEST(Environment, IsThatOfThisProcess) {
  setenv("STARLING_TEST_WORD", "a=b", 1);
  EXPECT_EQ(own_environment().at("STARLING_TEST_WORD"), "a=b");
  unsetenv("STARLING_TEST_WORD");
  EXPECT_FALSE(own_environment().contains("STARLING_TEST_WORD"));
}

}  // namespace
}  // namespace starling::launch
