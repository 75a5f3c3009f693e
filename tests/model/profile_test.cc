// Profiles as files, costs from them, and plans.
#include "starling/model/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "starling/base/error.h"
#include "starling/model/plan.h"
#include "starling/model/profile_costs.h"
#include "starling/topology/schedule.h"

namespace starling::model {
namespace {

using std::chrono::milliseconds;

// 8 workers on 4 nodes that compute 100 ms; an exchange of everybody takes `whole` seconds for the
// whole model, any other a part of it.
Profile make_profile(double whole, double variation = 0) {
  Profile profile;
  profile.workers = 8;
  profile.per_node = 2;
  profile.launcher = "none";
  profile.transport = "ucx";
  profile.model = "flat:1000000";
  profile.parameters = 1'000'000;
  profile.bytes = 4'000'000;
  profile.compute.resize(8);
  for (std::size_t r = 0; r < 8; ++r) {
    for (int i = 0; i < 40; ++i) {
      const double factor = 1 + variation * ((static_cast<int>(r) * 7 + i * 13) % 41 - 20) / 12.0;
      profile.compute[r].push_back({std::chrono::round<Duration>(Seconds(0.033 * factor)),
                                    std::chrono::round<Duration>(Seconds(0.067 * factor))});
    }
  }
  profile.ends = {1'000'000, 2'000'000, 3'000'000, 4'000'000};
  profile.shares = {0.25, 0.25, 0.25, 0.25};
  profile.updates = {.gradients = 0.001, .parameters = 0.001, .behind = 0.002, .held = 0.002};
  profile.network = {.latency = 1e-4, .bandwidth = 125e6};
  profile.local = {.latency = 1e-5, .bandwidth = 5e9};
  const auto everybody = topology::View::full(8);
  for (const Pattern& pattern : patterns(candidates(8, 2))) {
    const auto schedule = topology::make_schedule(
        pattern.schedule,
        {.workers = 8, .per_node = 2, .group_size = pattern.group_size, .peers = pattern.peers});
    for (std::int64_t p = 0; p < schedule->period(everybody).value_or(1); ++p) {
      ExchangePhase phase{.pattern = pattern, .phase = p, .samples = {}};
      for (const std::size_t bytes : {250'000, 1'000'000, 4'000'000}) {
        const double part = pattern.schedule == "complete" ? 1 : 0.4;
        phase.samples.push_back(
            {bytes, std::vector<double>(8, part * whole * static_cast<double>(bytes) / 4e6)});
      }
      profile.exchanges.push_back(std::move(phase));
    }
  }
  return profile;
}

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
  EXPECT_TRUE(
      refused("\"schedule\": \"complete\"", "\"schedule\": \"none\"")
          .ends_with("exchanges: those of everybody (complete) are missing; measure again"));
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

const Choice& find(const Plan& plan, const std::string& name) {
  for (const Choice& choice : plan.choices) {
    if (title(choice.candidate) == name) {
      return choice;
    }
  }
  throw Error(ErrorCode::Bug, "no " + name);
}

TEST(Plan, AllReduceWhereNothingIsGained) {
  const Plan plan = make_plan(make_profile(0.0005), {.steps = 300});
  EXPECT_EQ(title(plan.choices[plan.recommended].candidate), "all-reduce");
  EXPECT_EQ(plan.recommended, plan.all_reduce);
  EXPECT_FALSE(plan.why.empty());
}

// Exchange of everybody as long as computation: 1.4 times as fast if it is hidden (4 buckets).
TEST(Plan, ADecentralizedOneWhereExchangesAreLong) {
  const Plan plan = make_plan(make_profile(0.1), {.bucket_bytes = 1'000'000, .steps = 300});
  const Choice& best = plan.choices[plan.recommended];
  EXPECT_NE(plan.recommended, plan.all_reduce);
  EXPECT_TRUE(best.candidate.advisable);
  // T (φ + β_1) + Σ c + U against max(T + U, Σ c).
  const double all_reduce = 0.033 + 0.067 / 4 + 0.1 + 0.001;
  EXPECT_NEAR(find(plan, "all-reduce").prediction.step, all_reduce, 1e-6);
  EXPECT_NEAR(find(plan, "dadam, complete").prediction.step, 0.102, 1e-6);
  EXPECT_NEAR(find(plan, "dadam, complete").speed_up, all_reduce / 0.102, 1e-4);
  EXPECT_EQ(find(plan, "dadam, complete").buckets, 4U);
  for (std::size_t i = 1; i < plan.choices.size(); ++i) {
    EXPECT_LE(plan.choices[i - 1].prediction.step, plan.choices[i].prediction.step);
  }
}

// The trainer closes a bucket at the end of a parameter, so a large one makes a large bucket.
TEST(Plan, BucketsEndWhereParametersEnd) {
  Profile profile = make_profile(0.1);
  profile.ends = {100'000, 3'900'000, 4'000'000};
  profile.shares = {0.2, 0.5, 0.3};
  const Candidate all_reduce = candidates(8, 2).front();
  EXPECT_EQ(predict_choice(profile, {.steps = 50}, all_reduce, 50'000).buckets, 3U);
  EXPECT_EQ(predict_choice(profile, {.steps = 50}, all_reduce, 1'000'000).buckets, 2U);
  EXPECT_EQ(predict_choice(profile, {.steps = 50}, all_reduce, 1'000'000).bucket_bytes, 1'000'000U);
  EXPECT_EQ(predict_choice(profile, {.steps = 50}, all_reduce, 4'000'000).buckets, 1U);
}

TEST(Plan, SyncsAreInTheBytesOfANode) {
  const Plan plan = make_plan(make_profile(0.1), {.steps = 50});
  const double all = find(plan, "all-reduce").bytes_per_node;
  const double pairs = find(plan, "starling, groups of 2").bytes_per_node;
  EXPECT_NEAR(find(plan, "wagma, groups of 2").bytes_per_node, pairs + (all - pairs) / 10, 1);
  EXPECT_NEAR(find(plan, "local-sgd").bytes_per_node, all / 10, 1);
}

TEST(Plan, EveryRowIsPredicted) {
  const Plan plan = make_plan(make_profile(0.05, 0.1), {.steps = 200});
  for (const topology::Algorithm& row : topology::algorithms()) {
    if (row.name == "accum-adam") {
      continue;  // as dadam
    }
    const auto found = std::find_if(
        plan.choices.begin(), plan.choices.end(),
        [&](const Choice& choice) { return choice.candidate.algorithm->name == row.name; });
    ASSERT_NE(found, plan.choices.end()) << row.name;
    EXPECT_GT(found->prediction.step, 0.09) << row.name;
    EXPECT_LT(found->prediction.step, 0.3) << row.name;
  }
}

TEST(Plan, WhatIfFollowsLinks) {
  const Profile profile = make_profile(0.1);
  const Plan slow = make_plan(profile, {.bandwidth = 20e6, .steps = 200});
  const Plan fast = make_plan(profile, {.bandwidth = 50e9, .steps = 200});
  EXPECT_GT(find(slow, "all-reduce").prediction.step, 2 * find(fast, "all-reduce").prediction.step);
  EXPECT_EQ(title(fast.choices[fast.recommended].candidate), "all-reduce");
  const Plan many = make_plan(profile, {.workers = 64, .per_node = 8, .steps = 100});
  EXPECT_EQ(many.workers, 64U);
  EXPECT_GT(find(many, "dadam, aer").speed_up, 1.0);
}

TEST(Plan, Refusals) {
  const Profile profile = make_profile(0.1);
  const auto refused = [&](const Question& question) -> std::string {
    try {
      make_plan(profile, question);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refused({.workers = 1}), "one worker: there is nothing to decide, it trains alone");
  EXPECT_EQ(refused({.workers = 4, .per_node = 5}), "5 workers per node: there are 4 workers");
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
