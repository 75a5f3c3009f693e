// One maker per schedule; users call make_schedule. Each throws Error{Input} for options that it
// cannot serve. What a schedule does is written at the head of its source file and drawn in
// docs/schedules.md.
#pragma once

#include <memory>
#include <string>

#include "starling/topology/schedule.h"

namespace starling::topology {

std::unique_ptr<Schedule> make_complete(const ScheduleOptions& options);
std::unique_ptr<Schedule> make_ring(const ScheduleOptions& options);
std::unique_ptr<Schedule> make_ring_neighbours(const ScheduleOptions& options);
std::unique_ptr<Schedule> make_exponential(const ScheduleOptions& options);
std::unique_ptr<Schedule> make_push(const ScheduleOptions& options);
std::unique_ptr<Schedule> make_aer(const ScheduleOptions& options);
std::unique_ptr<Schedule> make_groups(const ScheduleOptions& options);
std::unique_ptr<Schedule> make_fixed_groups(const ScheduleOptions& options);
std::unique_ptr<Schedule> make_pairs(const ScheduleOptions& options);
std::unique_ptr<Schedule> make_base_k(const ScheduleOptions& options);
// A user's own schedule, read from a file and checked.
std::unique_ptr<Schedule> make_from_file(const std::string& path, const ScheduleOptions& options);
// `inner`, but everybody averages at every step t with t + 1 divisible by sync_period.
std::unique_ptr<Schedule> make_synced(std::unique_ptr<Schedule> inner, std::uint32_t sync_period);

}  // namespace starling::topology
