// Every algorithm of the field as a row of one table: who averages, when a round starts, what is
// sent, what stands in for a missing contribution, and where the gradient is taken. The runtime
// model, the simulator and the trainer read the same row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace starling::topology {

// How often the schedule applies.
enum class Cadence {
  EveryStep,
  EveryPeriod,      // only each H steps; nothing in between
  EveryStepAndSync  // and everybody each tau steps
};

enum class Trigger { AllArrived, OneSideArrived, FirstArrived, DrawnInitiator, WhenNeeded };

enum class Payload { Gradients, Parameters, ParametersAndPushWeight, HeldModel };

// What counts for a member that has not arrived.
enum class Missing {
  Wait,
  LatestModel,
  AccumulatedGradients,
  LastPublishedModel,
  NothingIsMissing
};

enum class GradientAt { CommonModel, OwnModel, OwnMixedBeforeUpdate, OwnDebiased, OwnOrMixed };

struct Algorithm {
  std::string_view name;
  std::string_view title;
  // The first is the default; the names are those of make_schedule.
  std::span<const std::string_view> schedules;
  Cadence cadence = Cadence::EveryStep;
  Trigger trigger = Trigger::AllArrived;
  Payload payload = Payload::Parameters;
  Missing missing = Missing::Wait;
  GradientAt gradient_at = GradientAt::OwnModel;
  // The round of step t is used by update t + 1, so that it overlaps a whole step.
  bool one_step_behind = false;
};

std::span<const Algorithm> algorithms();

// Whether it can average models after the update as well as beside it.
bool has_orders(const Algorithm& algorithm);

// Whether it matters to how many peers each worker sends, on that schedule (empty: its own).
bool has_peers(const Algorithm& algorithm, std::string_view schedule);

// Eager-SGD: gradients are averaged with whoever is there, and nothing averages models, which drift
// apart.
bool is_eager(const Algorithm& algorithm);

// WAGMA's tau, local SGD's H, if none is given; none: the algorithm has no syncs.
std::optional<std::uint32_t> default_sync_period(const Algorithm& algorithm);

// With or without dashes. Throws Error{Input} with the nearest known name.
const Algorithm& find_algorithm(std::string_view name);

std::string_view name_of(Cadence cadence);
std::string_view name_of(Trigger trigger);
std::string_view name_of(Payload payload);
std::string_view name_of(Missing missing);
std::string_view name_of(GradientAt place);

}  // namespace starling::topology
