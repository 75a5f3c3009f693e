// Profiles as files, costs from them, and candidates.
#include "starling/model/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "starling/base/error.h"
#include "starling/model/profile_costs.h"
#include "starling/topology/schedule.h"
#include "tests/model/profile_case.h"

namespace starling::model {
namespace {

using std::chrono::milliseconds;

class ProfileFile : public testing::Test {
 protected:
  ~ProfileFile() override { std::filesystem::remove(file_); }

  std::string text() const {
    std::ifstream stream(file_);
    std::stringstream all;
    all << stream.rdbuf();
    return all.str();
  }
  std::string refused(const std::string& what, const std::string& by) {
    write_profile(make_profile(0.1), file_);
    std::string changed = text();
    const std::size_t place = changed.find(what);
    EXPECT_NE(place, std::string::npos) << what;
    changed.replace(place, what.size(), by);
    std::ofstream(file_) << changed;
    return refused();
  }
  std::string refused(const Profile& profile) {
    write_profile(profile, file_);
    return refused();
  }
  std::string refused() const {
    try {
      read_profile(file_);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(file_.string() + ":")) << message;
      return message.substr(file_.string().size() + 1);
    }
    return "no error";
  }

  std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / ("profile-" + std::to_string(getpid()) + ".json");
};

TEST_F(ProfileFile, ComesBackAsItWas) {
  Profile before = make_profile(0.1);
  before.trained.push_back({.algorithm = "wagma",
                            .pattern = {.schedule = "groups", .group_size = 2},
                            .sync_period = 10,
                            .bucket_bytes = 1'000'000,
                            .steps = 200,
                            .step = 0.12,
                            .interval = 0.001});
  write_profile(before, file_);
  const std::string first = text();
  const Profile after = read_profile(file_);
  EXPECT_EQ(after.workers, 8U);
  EXPECT_EQ(after.compute[3][5].forward, milliseconds(33));
  EXPECT_EQ(after.exchanges.size(), before.exchanges.size());
  EXPECT_EQ(after.exchanges.back().pattern, before.exchanges.back().pattern);
  EXPECT_EQ(after.trained[0].pattern, before.trained[0].pattern);
  write_profile(after, file_);
  EXPECT_EQ(text(), first);
}

TEST_F(ProfileFile, RefusalsNameTheKeyAndTheLine) {
  EXPECT_EQ(refused("\"format\": 1", "\"format\": 2"),
            "2: format: this is a profile of form 2, and 1 is understood; measure again");
  EXPECT_EQ(refused("\"gradients\": 0.001", "\"gradients\": -0.001"),
            "11: updates/gradients: -0.001 is not a number of 0 or more");
  EXPECT_EQ(refused("\"behind\": 0.002,", ""), "10: updates: 'behind' is missing");
  EXPECT_EQ(refused("\"latency\": 0.0001", "\"latency\": \"fast\""),
            "17: network/latency: \"fast\" is not a number of 0 or more");
  EXPECT_EQ(refused("\"per_node\": 2", "\"per_node\": 9"),
            "4: per_node: more on a node than the 8 workers");
  EXPECT_EQ(refused("\"format\": 1", "\"format\": 4294967297"),
            "2: format: 4294967297 is too large");
  EXPECT_EQ(refused("\"behind\": 0.002", "\"behind\": 1e999"), "13: a number is too large");
  EXPECT_EQ(refused("\"behind\": 0.002", "\"behind\": 1e10"),
            "13: updates/behind: 10000000000.0 s are more than a measured time can be");
  EXPECT_TRUE(refused("\"phase\": 0", "\"phase\": 1")
                  .ends_with("exchanges/0/phase: 1; of this schedule phase 0 comes next"));
  EXPECT_TRUE(refused("\"bytes\": 250000", "\"bytes\": 0")
                  .ends_with("samples/0/bytes: 0 is not a whole number of 1 or more"));
  EXPECT_TRUE(refused("\"schedule\": \"complete\"", "\"schedule\": \"none\"")
                  .ends_with("exchanges: those of schedule 'complete' are missing; measure again"));
}

// What a plan needs of a profile is asked of the file, not of the user afterwards.
TEST_F(ProfileFile, ExchangesAreThereAllOfThem) {
  const Profile profile = make_profile(0.1);
  const auto refused_without = [&](const Pattern& pattern, std::int64_t from) {
    Profile less = profile;
    std::erase_if(less.exchanges, [&](const ExchangePhase& phase) {
      return phase.pattern == pattern && phase.phase >= from;
    });
    return refused(less);
  };
  EXPECT_EQ(refused_without({.schedule = "groups", .group_size = 2}, 0),
            "42: exchanges: those of schedule 'groups' in groups of 2 are missing; measure again");
  EXPECT_EQ(refused_without({.schedule = "exponential"}, 2),
            "42: exchanges: those of schedule 'exponential' have 2 phases, not 3; measure again");
}

TEST_F(ProfileFile, SamplesGoFromSmallToLarge) {
  EXPECT_TRUE(refused("\"bytes\": 1000000,", "\"bytes\": 250000,")
                  .ends_with("exchanges/0/samples/1/bytes: 250000 after 250000; samples go from "
                             "the smallest to the largest"));
  EXPECT_TRUE(refused("\"bytes\": 4000000,\n     \"sec", "\"bytes\": 1,\n     \"sec")
                  .ends_with("exchanges/0/samples/2/bytes: 1 after 1000000; samples go from the "
                             "smallest to the largest"));
}

TEST_F(ProfileFile, WhatWasTrainedIsKnown) {
  Profile profile = make_profile(0.1);
  profile.trained.push_back({.algorithm = "wagma",
                             .pattern = {.schedule = "groups", .group_size = 2},
                             .sync_period = 10,
                             .bucket_bytes = 1,
                             .steps = 1,
                             .step = 0.1});
  EXPECT_EQ(refused(profile), "no error");
  profile.trained[0].algorithm = "wagna";
  EXPECT_NE(refused(profile).find(": trained/0/algorithm: unknown algorithm 'wagna'"),
            std::string::npos)
      << refused(profile);
  profile.trained[0].algorithm = "wagma";
  profile.trained[0].pattern.group_size = 3;
  EXPECT_TRUE(
      refused(profile).ends_with("trained/0/schedule: no exchanges of schedule 'groups' "
                                 "in groups of 3 were measured"))
      << refused(profile);
  profile.trained[0].pattern.group_size = 2;
  profile.trained[0].step = 0;
  EXPECT_TRUE(refused(profile).ends_with("trained/0/step_seconds: no step takes no time"));
}

TEST_F(ProfileFile, StepsTakeTime) {
  Profile profile = make_profile(0.1);
  for (auto& worker : profile.compute) {
    worker.assign(2, ComputeTime{});
  }
  EXPECT_TRUE(
      refused(profile).ends_with("compute: no step takes any time: there is nothing to predict"))
      << refused(profile);
}

TEST_F(ProfileFile, NotJson) {
  std::ofstream(file_) << "{\n \"format\": 1,\n oops\n}";
  try {
    read_profile(file_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), file_.string() + ":3: this is not JSON");
  }
}

TEST(ProfileCosts, LieOnLinesBetweenWhatWasMeasured) {
  ExchangePhase phase;
  phase.samples = {{100, {1.0, 3.0}}, {200, {2.0, 4.0}}, {400, {3.0, 10.0}}};
  EXPECT_DOUBLE_EQ(seconds_of(phase, Rank{0}, 100), 1.0);
  EXPECT_DOUBLE_EQ(seconds_of(phase, Rank{0}, 150), 1.5);
  EXPECT_DOUBLE_EQ(seconds_of(phase, Rank{0}, 300), 2.5);
  EXPECT_DOUBLE_EQ(seconds_of(phase, Rank{1}, 300), 7.0);
  EXPECT_DOUBLE_EQ(seconds_of(phase, Rank{0}, 600), 4.0);
  EXPECT_DOUBLE_EQ(seconds_of(phase, Rank{0}, 0), 0.5);  // nothing is free
}

TEST(ProfileCosts, OfGroupsAndOfEverybody) {
  const Profile profile = make_profile(0.1);
  const ProfileCosts costs(profile, {.schedule = "exponential"}, {4'000'000, 1'000'000});
  const std::vector<Rank> pair = {Rank{0}, Rank{1}};
  const std::vector<Rank> alone = {Rank{2}};
  std::vector<Rank> all;
  for (std::uint32_t r = 0; r < 8; ++r) {
    all.push_back(Rank{r});
  }
  const std::array<Exchange, 3> active = {Exchange{pair, true}, Exchange{alone, true},
                                          Exchange{all, true}};
  std::array<double, 3> out{};
  costs.seconds(0, Step{1}, active, out);
  EXPECT_DOUBLE_EQ(out[0], 0.04);
  EXPECT_DOUBLE_EQ(out[1], 0);
  EXPECT_DOUBLE_EQ(out[2], 0.1);
  costs.seconds(1, Step{1}, active, out);
  EXPECT_DOUBLE_EQ(out[0], 0.01);
  EXPECT_THROW(ProfileCosts(profile, {.schedule = "groups", .group_size = 3}, {4}), Error);
}

TEST(Candidates, WhatMakesSense) {
  for (const auto& [workers, per_node] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {2, 1}, {3, 1}, {8, 2}, {12, 4}, {64, 8}}) {
    const auto all = candidates(workers, per_node);
    EXPECT_EQ(title(all.front()), "all-reduce");
    std::set<std::string> titles;
    for (const Candidate& candidate : all) {
      EXPECT_TRUE(titles.insert(title(candidate)).second) << title(candidate);
      EXPECT_NO_THROW(topology::make_schedule(candidate.pattern.schedule,
                                              {.workers = workers,
                                               .per_node = per_node,
                                               .group_size = candidate.pattern.group_size,
                                               .peers = candidate.pattern.peers}));
    }
    EXPECT_EQ(titles.contains("dadam, aer"), per_node > 1);
  }
}

}  // namespace
}  // namespace starling::model
