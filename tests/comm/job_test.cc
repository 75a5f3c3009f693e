// What launchers set, and every way in which it can contradict itself.
#include "starling/comm/job.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "starling/base/error.h"
#include "starling/comm/address.h"

namespace starling::comm {
namespace {

using Values = std::map<std::string, std::string>;

Job job_of(const Values& values) {
  return find_job([&](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  });
}

// The values with some of them replaced.
Values with(Values values, const Values& changes) {
  for (const auto& [name, value] : changes) {
    values[name] = value;
  }
  return values;
}

// Refused as input, in a text that has all of the words.
void expect_refusal(const Values& values, const std::vector<std::string>& words) {
  try {
    const Job job = job_of(values);
    ADD_FAILURE() << "accepted as " << name_of(job.launcher) << " at '" << job.meet << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Input);
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << error.what() << " does not say " << word;
    }
  }
}

const Values kRun = {{"STARLING_RANK", "2"},
                     {"STARLING_SIZE", "4"},
                     {"STARLING_MEET", "unix:@starling-7"},
                     {"STARLING_SECRET", "hush"}};
const Values kTorch = {
    {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
const Values kPmix = {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "job.1"}};

TEST(Job, NoLauncherIsOneWorker) {
  const Job job = job_of({});
  EXPECT_EQ(job.launcher, Launcher::None);
  EXPECT_EQ(job.rank, Rank{0});
  EXPECT_EQ(job.size, 1U);
  EXPECT_EQ(job.meet, "");
  EXPECT_EQ(job.secret, "");
}

TEST(Job, StarlingRun) {
  const Job job = job_of(kRun);
  EXPECT_EQ(job.launcher, Launcher::StarlingRun);
  EXPECT_EQ(job.rank, Rank{2});
  EXPECT_EQ(job.size, 4U);
  EXPECT_EQ(job.meet, "unix:@starling-7");
  EXPECT_EQ(job.secret, "hush");
  EXPECT_EQ(job_of(with(with(kTorch, kPmix), kRun)).launcher, Launcher::StarlingRun);
  EXPECT_EQ(job_of({{"STARLING_RANK", "0"}, {"STARLING_SIZE", "1"}}).meet, "");
}

TEST(Job, TorchrunStyle) {
  const Job job = job_of(kTorch);
  EXPECT_EQ(job.launcher, Launcher::Torchrun);
  EXPECT_EQ(job.rank, Rank{3});
  EXPECT_EQ(job.size, 8U);
  EXPECT_EQ(job.meet, "tcp:node1:29500");
  EXPECT_EQ(job.secret, "");
  EXPECT_EQ(job_of(with(kTorch, {{"STARLING_SECRET", "s"}})).secret, "s");
  EXPECT_EQ(job_of(with(kTorch, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}})).size, 8U);
  EXPECT_EQ(job_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).size, 1U);
}

TEST(Job, WhereTorchrunStyleMeets) {
  const auto meet = [](const Values& changes) { return job_of(with(kTorch, changes)).meet; };
  EXPECT_EQ(meet({{"TORCHELASTIC_USE_AGENT_STORE", "True"}}), "tcp:node1:29501");
  EXPECT_EQ(meet({{"TORCHELASTIC_USE_AGENT_STORE", "False"}}), "tcp:node1:29500");
  EXPECT_EQ(meet({{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"STARLING_MEET", "tcp:other:7"}}),
            "tcp:other:7");
  EXPECT_EQ(meet({{"MASTER_ADDR", "fe80::1"}}), "tcp:[fe80::1]:29500");
  EXPECT_EQ(meet({{"MASTER_ADDR", "[fe80::1]"}}), "tcp:[fe80::1]:29500");
}

TEST(Job, Pmix) {
  const Job job = job_of(with(kPmix, {{"STARLING_SECRET", "s"}}));
  EXPECT_EQ(job.launcher, Launcher::Pmix);
  EXPECT_EQ(job.meet, "");
  EXPECT_EQ(job.secret, "s");
}

TEST(Job, UnderPmixTorchrunStyleCountsOnlyIfComplete) {
  EXPECT_EQ(job_of(with(kPmix, kTorch)).launcher, Launcher::Torchrun);
  EXPECT_EQ(job_of(with(kPmix, {{"RANK", "0"}})).launcher, Launcher::Pmix);
  EXPECT_EQ(job_of(with(kPmix, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})).launcher, Launcher::Pmix);
  EXPECT_EQ(job_of(with(kPmix, with(kTorch, {{"MASTER_PORT", ""}}))).launcher, Launcher::Pmix);
}

TEST(Job, RanksAndSizesThatCannotBe) {
  expect_refusal(with(kRun, {{"STARLING_RANK", "two"}}), {"STARLING_RANK=two", "not a number"});
  expect_refusal(with(kRun, {{"STARLING_RANK", "-1"}}), {"STARLING_RANK=-1"});
  expect_refusal(with(kRun, {{"STARLING_RANK", "4"}}), {"STARLING_RANK=4", "STARLING_SIZE=4"});
  expect_refusal(with(kRun, {{"STARLING_SIZE", "0"}}), {"STARLING_SIZE=0"});
  expect_refusal(with(kTorch, {{"RANK", "8"}}), {"RANK=8", "WORLD_SIZE=8"});
  expect_refusal(with(kTorch, {{"RANK", "3x"}}), {"RANK=3x"});
  expect_refusal(with(kTorch, {{"WORLD_SIZE", "0"}}), {"WORLD_SIZE=0"});
  expect_refusal(with(kTorch, {{"WORLD_SIZE", "4000000000"}}), {"WORLD_SIZE=4000000000"});
  expect_refusal(with(kTorch, {{"WORLD_SIZE", "99999999999999999999"}}), {"WORLD_SIZE=9999"});
  expect_refusal(with(kPmix, {{"PMIX_RANK", "x"}}), {"PMIX_RANK=x"});
}

TEST(Job, LocalRanksThatCannotBe) {
  expect_refusal(with(kTorch, {{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}),
                 {"LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"});
  expect_refusal(with(kTorch, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "9"}}),
                 {"LOCAL_WORLD_SIZE=9", "WORLD_SIZE=8"});
  expect_refusal(with(kTorch, {{"LOCAL_RANK", "9"}}), {"LOCAL_RANK=9", "WORLD_SIZE=8"});
  expect_refusal(with(kTorch, {{"LOCAL_RANK", "a"}}), {"LOCAL_RANK=a"});
  expect_refusal(with(kTorch, {{"LOCAL_WORLD_SIZE", "0"}}), {"LOCAL_WORLD_SIZE=0"});
}

TEST(Job, HalfOfTheVariables) {
  expect_refusal({{"STARLING_RANK", "1"}}, {"STARLING_SIZE", "STARLING_RANK=1"});
  expect_refusal({{"STARLING_SIZE", "4"}}, {"STARLING_RANK", "STARLING_SIZE=4"});
  expect_refusal(with(kRun, {{"STARLING_MEET", ""}}), {"STARLING_MEET", "STARLING_SIZE=4"});
  expect_refusal({{"RANK", "1"}}, {"WORLD_SIZE", "RANK=1"});
  expect_refusal({{"WORLD_SIZE", "2"}}, {"RANK", "WORLD_SIZE=2"});
  expect_refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}},
                 {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE=2"});
  expect_refusal(with(kTorch, {{"MASTER_ADDR", ""}}), {"MASTER_ADDR", "MASTER_PORT=29500"});
  expect_refusal(with(kTorch, {{"MASTER_PORT", ""}}), {"MASTER_PORT", "MASTER_ADDR=node1"});
  expect_refusal({{"PMIX_RANK", "1"}}, {"PMIX_NAMESPACE", "PMIX_RANK=1"});
  expect_refusal({{"PMIX_NAMESPACE", "job.1"}}, {"PMIX_RANK", "PMIX_NAMESPACE=job.1"});
  expect_refusal({{"STARLING_MEET", "unix:@a"}}, {"STARLING_MEET=unix:@a", "STARLING_RANK"});
}

TEST(Job, PortsThatCannotBe) {
  expect_refusal(with(kTorch, {{"MASTER_PORT", "0"}}), {"MASTER_PORT=0"});
  expect_refusal(with(kTorch, {{"MASTER_PORT", "65536"}}), {"MASTER_PORT=65536"});
  expect_refusal(with(kTorch, {{"MASTER_PORT", "http"}}), {"MASTER_PORT=http"});
  expect_refusal(with(kTorch, {{"MASTER_PORT", "65535"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
                 {"MASTER_PORT=65535 + 1"});
}

TEST(Job, PlacesToMeetThatCannotBe) {
  for (const std::string meet :
       {"", "nowhere", "unix:", "unix:@", "unix:/tmp/x", "tcp:", "tcp:host", "tcp:host:", "tcp::1",
        "tcp:host:0", "tcp:host:65536", "tcp:host:1x", "tcp:::1:80", "tcp:[]:80", "tcp:[::1]",
        "tcp:[host]:80", "udp:host:1"}) {
    EXPECT_FALSE(parse_address(meet)) << meet;
  }
  EXPECT_FALSE(parse_address("unix:@" + std::string(108, 'x')));
  EXPECT_TRUE(parse_address("unix:@" + std::string(107, 'x')));
  expect_refusal(with(kRun, {{"STARLING_MEET", "host:1"}}), {"STARLING_MEET=host:1"});
  expect_refusal(with(kTorch, {{"STARLING_MEET", "tcp:host"}}), {"STARLING_MEET=tcp:host"});
  expect_refusal(with(kTorch, {{"MASTER_ADDR", "[::1"}}), {"MASTER_ADDR=[::1"});
}

TEST(Job, Addresses) {
  const auto local = parse_address("unix:@a b");
  ASSERT_TRUE(local);
  EXPECT_TRUE(local->local);
  EXPECT_EQ(local->name, "a b");
  const auto v6 = parse_address("tcp:[::1]:80");
  ASSERT_TRUE(v6);
  EXPECT_FALSE(v6->local);
  EXPECT_EQ(v6->name, "::1");
  EXPECT_EQ(v6->port, 80);
}

TEST(Job, ASecretMayNotBeTooLong) {
  EXPECT_EQ(job_of(with(kRun, {{"STARLING_SECRET", std::string(128, 'x')}})).secret.size(), 128U);
  expect_refusal(with(kRun, {{"STARLING_SECRET", std::string(129, 'x')}}),
                 {"STARLING_SECRET", "129"});
}

TEST(Job, SeveralWorkersOfAnUnknownLauncherAreNotSeveralJobs) {
  expect_refusal({{"SLURM_STEP_NUM_TASKS", "4"}}, {"SLURM_STEP_NUM_TASKS=4", "--mpi=pmix"});
  expect_refusal({{"PMI_SIZE", "4"}}, {"PMI_SIZE=4"});
  EXPECT_EQ(job_of({{"SLURM_STEP_NUM_TASKS", "1"}}).launcher, Launcher::None);
  EXPECT_EQ(job_of(with(kPmix, {{"SLURM_STEP_NUM_TASKS", "4"}})).launcher, Launcher::Pmix);
  EXPECT_EQ(job_of({{"SLURM_STEP_NUM_TASKS", "4"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}}).launcher,
            Launcher::Torchrun);
}

}  // namespace
}  // namespace starling::comm
