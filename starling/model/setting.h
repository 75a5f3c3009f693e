// What is predicted: a row of the table of algorithms on a schedule, the times that its workers
// compute and update, what exchanges cost, and the switches of a run. All times are seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "starling/base/compute_times.h"
#include "starling/base/delay.h"
#include "starling/base/units.h"
#include "starling/model/exchange_costs.h"
#include "starling/model/task_time.h"
#include "starling/topology/algorithm.h"
#include "starling/topology/schedule.h"

namespace starling::model {

// Of one step of one worker.
struct StepTime {
  double delay = 0;  // before it computes
  double forward = 0;
  double backward = 0;
  double whole() const { return delay + forward + backward; }
};

// A pure function; asked once per worker and step.
using Times = std::function<StepTime(Rank, Step)>;
Times times_of(const ComputeTimes& compute, std::optional<Delay> delay = std::nullopt);

// Of rows that average parameters, one step at a time (topology::has_orders).
enum class Order : std::uint8_t { After, Beside };

// What exchanges queue at.
enum class Engines : std::uint8_t {
  OnePerWorker,  // one after the other, whatever the group
  OnePerGroup    // groups of a worker have engines of their own
};

struct Setting {
  const topology::Algorithm* algorithm = nullptr;
  const topology::Schedule* schedule = nullptr;
  std::uint32_t workers = 0;
  Times times{};
  const ExchangeCosts* costs = nullptr;

  // Gradients become ready bucket by bucket.
  std::size_t buckets = 1;
  // Of the backward pass, per bucket; none: all the same.
  std::vector<double> shares{};
  // Seconds of the update, per bucket; none: no time.
  std::vector<double> updates{};

  // WAGMA: every tau-th step everybody in person. Local SGD: the only steps that average (H).
  std::optional<std::uint32_t> sync_period = std::nullopt;
  // In place of what the row says.
  std::optional<Order> order = std::nullopt;
  std::optional<topology::Trigger> trigger = std::nullopt;
  // Of a drawn initiator: it counts this many arrivals instead of its own.
  std::optional<std::uint32_t> quorum = std::nullopt;
  // First arrival: it waits that long for its group.
  double grace = 0;
  // Until everybody has heard of an arrival.
  double activation = 0;
  // When needed: no round without the updates of version v - age_bound.
  std::int64_t age_bound = 9;
  // Rows that are one step behind: the exchange runs behind the next step; or inside this one.
  bool overlap = true;
  // All-reduce, and rows that are one step behind: exchanges start inside the backward pass; or
  // after it.
  bool streamed = true;
  // Neighbours that are no group: a worker's exchange has ended when those it gives to have taken
  // part as well, as in comm/; or when it has what it takes, and the rest is left to the network.
  bool push_waits = true;
  Engines engines = Engines::OnePerWorker;

  std::uint64_t steps = 1000;
  std::uint64_t seed = 0;  // of drawn initiators

  // Told every task, not in order of time. For drawings, and tests.
  std::function<void(const TaskTime&)> record{};
};

// Whether everybody averages in person at this step.
inline bool is_sync(const Setting& setting, std::int64_t step) {
  return setting.sync_period && (step + 1) % *setting.sync_period == 0;
}

}  // namespace starling::model
