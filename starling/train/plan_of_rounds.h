// What a user's options mean for rounds: which row, which schedule, which trigger.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "starling/comm/step.h"
#include "starling/comm/workers.h"
#include "starling/topology/algorithm.h"
#include "starling/topology/schedule.h"

namespace starling::train {

struct Options;

struct PlanOfRounds {
  const topology::Algorithm* algorithm = nullptr;  // null: alone
  std::string schedule_name;
  std::unique_ptr<topology::Schedule> schedule;
  comm::StepOptions steps;
};

// What is meant if no sync period is given; none: the algorithm has no syncs.
std::optional<std::uint32_t> default_sync_period(const topology::Algorithm& algorithm);

// Throws Error{Input} naming the option that does not fit.
PlanOfRounds plan_rounds(const comm::Workers& workers, const Options& options);

}  // namespace starling::train
