// What a user's words mean for rounds: which row of the table of algorithms, which schedule, which
// trigger, and what is meant where nothing is said. Training and simulation read them alike.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "starling/comm/step.h"
#include "starling/topology/algorithm.h"
#include "starling/topology/schedule.h"

namespace starling::comm {

struct PlanOptions {
  std::uint32_t workers = 1;
  std::uint32_t per_node = 1;  // as topology::ScheduleOptions has it
  std::string algorithm = "starling";
  std::string schedule = "";  // empty: the algorithm's first
  std::optional<std::uint32_t> group_size = std::nullopt;
  std::uint32_t peers = 1;
  std::optional<std::uint32_t> sync_period = std::nullopt;  // topology::default_sync_period()
  std::string averaging = "";  // "after" or "beside" the update; empty: the algorithm's
  std::string trigger = "";    // parse_trigger(); empty: the algorithm's
  std::optional<std::uint32_t> age_bound = std::nullopt;
  bool overlap = true;
  bool gradient_at_mixed = false;
  bool bf16 = false;
  // All workers take as many. None: who has finished leaves.
  std::optional<std::uint64_t> steps = std::nullopt;
  std::uint64_t seed = 0;
};

struct Plan {
  std::string schedule_name;
  std::unique_ptr<topology::Schedule> schedule;
  // Refers to the schedule; shape, parts and what belongs to a run are the caller's.
  StepOptions steps;
};

// Throws Error{Input}, one line, naming what does not fit.
Plan make_plan(const PlanOptions& options);

}  // namespace starling::comm
