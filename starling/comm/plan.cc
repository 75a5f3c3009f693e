#include "starling/comm/plan.h"

#include <limits>

#include "starling/base/error.h"

namespace starling::comm {
namespace {

using topology::Payload;

std::optional<Order> order_of(const PlanOptions& options, const topology::Algorithm& row) {
  if (options.averaging.empty()) {
    return std::nullopt;
  }
  require(options.averaging == "after" || options.averaging == "beside",
          "averaging '{}' the update; there are after, beside", options.averaging);
  require(topology::has_orders(row),
          "when {} averages is decided; a choice there is for d-psgd, wagma and local-sgd",
          row.name);
  return options.averaging == "after" ? Order::UpdateThenAverage : Order::AverageWhileUpdating;
}

TriggerOptions trigger_for(const PlanOptions& options, const topology::Algorithm& row) {
  TriggerOptions trigger = trigger_of(row);
  if (!options.trigger.empty()) {
    trigger = parse_trigger("trigger", options.trigger, options.workers);
    require(trigger.when != TriggerOptions::When::Need || row.payload == Payload::HeldModel,
            "the trigger 'need' is for models that the engine holds (starling)");
  } else if (!options.overlap && row.payload == Payload::HeldModel) {
    trigger.when = TriggerOptions::When::All;
  }
  trigger.age_bound = options.age_bound.value_or(static_cast<std::uint32_t>(trigger.age_bound));
  trigger.seed = options.seed;
  return trigger;
}

topology::ScheduleOptions schedule_options(const PlanOptions& options) {
  require(!options.group_size || *options.group_size <= options.workers,
          "groups of {} in a job of {} worker{}", options.group_size.value_or(0), options.workers,
          options.workers == 1 ? "" : "s");
  require(!options.group_size || *options.group_size > 0, "groups of 0 workers");
  return {.workers = options.workers,
          .per_node = options.per_node,
          .group_size = options.group_size,
          .peers = options.peers,
          .seed = options.seed};
}

}  // namespace

Plan make_plan(const PlanOptions& options) {
  const topology::Algorithm& row = topology::find_algorithm(options.algorithm);
  require(!options.sync_period || *options.sync_period > 0, "a sync period of 0 steps");
  require(!options.steps || *options.steps > 0, "0 steps");
  require(!options.gradient_at_mixed || row.payload == Payload::HeldModel,
          "{} takes gradients where it always does; gradients at the mixed model are for starling",
          row.name);
  require(!options.bf16 || row.payload != Payload::Gradients,
          "bf16 is for averages of models: gradients would lose what rounding takes away");
  Plan plan;
  plan.schedule_name =
      options.schedule.empty() ? std::string(row.schedules.front()) : options.schedule;
  plan.schedule = topology::make_schedule(plan.schedule_name, schedule_options(options));

  StepOptions& steps = plan.steps;
  steps.algorithm = &row;
  steps.schedule = plan.schedule.get();
  steps.steps = options.steps.value_or(std::numeric_limits<std::uint64_t>::max() / 2);
  steps.together = options.steps.has_value();
  steps.sync_period =
      options.sync_period ? options.sync_period : topology::default_sync_period(row);
  steps.order = order_of(options, row);
  steps.overlap = options.overlap;
  steps.gradient_at_mixed = options.gradient_at_mixed;
  steps.bf16 = options.bf16;
  steps.trigger = trigger_for(options, row);
  return plan;
}

}  // namespace starling::comm
