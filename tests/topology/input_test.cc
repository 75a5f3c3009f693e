// What bad input gets: an error that names the value and what is allowed. And the algorithm table.
#include <gtest/gtest.h>

#include "starling/base/error.h"
#include "starling/base/suggestion.h"
#include "starling/topology/algorithm.h"
#include "starling/topology/schedule.h"

namespace starling::topology {
namespace {

void expect_error(const std::string& name, const ScheduleOptions& options,
                  const std::vector<std::string>& parts) {
  try {
    make_schedule(name, options);
    ADD_FAILURE() << name << " was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Input);
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  }
}

TEST(Input, ErrorsNameTheValueAndWhatIsAllowed) {
  for (const ScheduleEntry& entry : schedule_entries()) {
    expect_error(std::string(entry.name), {.workers = 0}, {"0 workers", "at least 1"});
  }
  expect_error("aer", {.workers = 10, .per_node = 4}, {"4", "do not divide 10", "equal size"});
  expect_error("aer", {.workers = 10, .per_node = 0}, {"0 workers per node"});
  expect_error("groups", {.workers = 8, .group_size = 9}, {"groups of 9", "8 workers", "1 to 8"});
  expect_error("groups", {.workers = 8, .group_size = 0}, {"groups of 0", "1 to 8"});
  expect_error("fixed-groups", {.workers = 3, .group_size = 4}, {"groups of 4", "1 to 3"});
  expect_error("push", {.workers = 8, .peers = 4}, {"4 peers", "1 to 3"});
  expect_error("push", {.workers = 8, .peers = 0}, {"0 peers", "1 to 3"});
  expect_error("base-k", {.workers = 8, .peers = 0}, {"0 peers"});
  expect_error("ring", {.workers = 8, .sync_period = 0}, {"sync period of 0"});
  expect_error("ring", {.workers = 1u << 25}, {"33554432 workers", "16777216"});
}

TEST(Input, AnUnknownNameIsAnsweredWithTheNearest) {
  expect_error("rign", {.workers = 4}, {"'rign'", "'ring'", "base-k"});
  expect_error("Groups", {.workers = 4}, {"'groups'"});
  expect_error("expo", {.workers = 4}, {"Known: complete"});
  expect_error("exponental", {.workers = 4}, {"'exponential'"});
  expect_error("fixed_groups", {.workers = 4}, {"'fixed-groups'"});
  expect_error("file", {.workers = 4}, {"unknown schedule 'file'"});
  expect_error("", {.workers = 4}, {"unknown schedule ''"});
}

TEST(Input, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("ring", ""), 4u);
  EXPECT_EQ(edit_distance("ring", "rign"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("aer", "aer"), 0u);
}

TEST(Algorithm, RowsOfTheTable) {
  EXPECT_EQ(algorithms().size(), 12u);
  const Algorithm& wagma = find_algorithm("wagma");
  EXPECT_EQ(wagma.schedules.front(), "groups");
  EXPECT_EQ(wagma.cadence, Cadence::EveryStepAndSync);
  EXPECT_EQ(wagma.trigger, Trigger::FirstArrived);
  EXPECT_EQ(wagma.missing, Missing::LastPublishedModel);
  EXPECT_FALSE(wagma.one_step_behind);
  const Algorithm& all_reduce = find_algorithm("all-reduce");
  EXPECT_EQ(all_reduce.payload, Payload::Gradients);
  EXPECT_EQ(all_reduce.gradient_at, GradientAt::CommonModel);
  const Algorithm& own = find_algorithm("starling");
  EXPECT_EQ(own.trigger, Trigger::WhenNeeded);
  EXPECT_EQ(own.missing, Missing::NothingIsMissing);
  EXPECT_TRUE(own.one_step_behind);
  EXPECT_THROW(find_algorithm("wagmah"), Error);
}

// Every schedule that a row names exists, for any number of workers, and every word has a name.
TEST(Algorithm, SchedulesExist) {
  for (const Algorithm& algorithm : algorithms()) {
    ASSERT_FALSE(algorithm.schedules.empty());
    for (const std::string_view name : algorithm.schedules) {
      EXPECT_NO_THROW(make_schedule(name, {.workers = 7})) << algorithm.name << " " << name;
    }
    EXPECT_EQ(&find_algorithm(algorithm.name), &algorithm);
    for (const std::string_view word :
         {name_of(algorithm.cadence), name_of(algorithm.trigger), name_of(algorithm.payload),
          name_of(algorithm.missing), name_of(algorithm.gradient_at)}) {
      EXPECT_FALSE(word.empty());
    }
  }
}

}  // namespace
}  // namespace starling::topology
