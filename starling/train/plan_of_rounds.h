// What the options of training mean for the rounds of these workers.
#pragma once

#include <memory>
#include <string>

#include "starling/comm/plan.h"
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

// Throws Error{Input} naming the option that does not fit.
PlanOfRounds plan_rounds(const comm::Workers& workers, const Options& options);

// Workers on each node, if all nodes have as many and their ranks are consecutive; 1 otherwise.
std::uint32_t workers_per_node(const comm::Workers& workers);

}  // namespace starling::train
