// Who averages with whom at step t. A schedule is a pure function of (step, rank, view): every
// worker computes its own row, all rows fit together, and nobody has to be asked. It holds no
// tables that grow with the step or with N², and is defined for every set of survivors.
// Immutable once made; safe to use from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "starling/base/units.h"
#include "starling/topology/row.h"
#include "starling/topology/view.h"

namespace starling::topology {

class Schedule {
 public:
  virtual ~Schedule() = default;
  // Requires: step >= 0, rank alive in view, view of as many workers as the schedule was made for.
  virtual Row row(Step step, Rank rank, const View& view) const = 0;
  // The least p with row(t + p) = row(t) for all t and ranks (with a sync period: a multiple of
  // it); none if it never repeats.
  virtual std::optional<std::int64_t> period(const View& view) const = 0;
  // For random schedules: E[WᵀW] on the zero-mean space is this multiple of the identity, so a step
  // leaves this fraction of the squared deviation in expectation.
  virtual std::optional<double> expected_factor(const View& view) const;
};

struct ScheduleOptions {
  std::uint32_t workers = 0;
  // Workers on one node; ranks of a node are consecutive.
  std::uint32_t per_node = 1;
  // Default: default_group_size(workers).
  std::optional<std::uint32_t> group_size = std::nullopt;
  // Neighbours per step of push and base-k.
  std::uint32_t peers = 1;
  std::uint64_t seed = 0;
  // Every tau-th step (t + 1 divisible by tau) everybody averages.
  std::optional<std::uint32_t> sync_period = std::nullopt;
};

// About the square root, a power of two when `workers` is one: 2 of 4, 4 of 16, 8 of 64.
std::uint32_t default_group_size(std::uint32_t workers);

// A schedule by the name users type. Throws Error{Input} that names the wrong value and what is
// allowed; for an unknown name, the nearest known one.
std::unique_ptr<Schedule> make_schedule(std::string_view name, const ScheduleOptions& options);

struct ScheduleEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Schedule> (*make)(const ScheduleOptions&);  // null for file:PATH
};
std::span<const ScheduleEntry> schedule_entries();

}  // namespace starling::topology
