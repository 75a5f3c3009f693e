#include "starling/train/plan_of_rounds.h"

#include <charconv>
#include <limits>
#include <map>

#include "starling/base/error.h"
#include "starling/train/data_parallel.h"

namespace starling::train {
namespace {

// Workers on each node, if all nodes have as many and their ranks are consecutive; 1 otherwise.
std::uint32_t per_node(const comm::Workers& workers) {
  std::map<std::uint32_t, std::uint32_t> counts;
  for (const Rank rank : workers.everyone()) {
    ++counts[workers.node_of(rank).value];
  }
  const std::uint32_t count = counts.begin()->second;
  for (const Rank rank : workers.everyone()) {
    const std::uint32_t first = rank.value / count * count;
    if (counts[workers.node_of(rank).value] != count ||
        workers.node_of(rank) != workers.node_of(Rank{first})) {
      return 1;
    }
  }
  return count;
}

Duration parse_grace(const std::string& text) {
  std::size_t read = 0;
  double value = -1;
  try {
    value = std::stod(text, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  require(read == text.size() && !text.empty() && value >= 0,
          "trigger 'first+{}': what follows + is seconds, or 'learnt'", text);
  return std::chrono::duration_cast<Duration>(Seconds(value));
}

std::uint32_t parse_quorum(const std::string& text) {
  std::uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  require(error == std::errc() && end == text.data() + text.size() && count > 0,
          "trigger 'quorum:{}': what follows : is a number of workers", text);
  return count;
}

std::optional<comm::Order> parse_order(const std::string& averaging,
                                       const topology::Algorithm& row) {
  if (averaging.empty()) {
    return std::nullopt;
  }
  require(averaging == "after" || averaging == "beside",
          "averaging '{}' the update; there are after, beside", averaging);
  require(topology::has_orders(row),
          "when {} averages is decided; a choice there is for d-psgd, wagma and local-sgd",
          row.name);
  return averaging == "after" ? comm::Order::UpdateThenAverage : comm::Order::AverageWhileUpdating;
}

comm::TriggerOptions parse_trigger(const std::string& text) {
  using When = comm::TriggerOptions::When;
  comm::TriggerOptions trigger;
  if (text == "all") {
    trigger.when = When::All;
  } else if (text == "first") {
    trigger.when = When::First;
  } else if (text == "need") {
    trigger.when = When::Need;
  } else if (text == "majority") {
    trigger.when = When::Initiator;
  } else if (text.starts_with("quorum:")) {
    trigger.when = When::Quorum;
    trigger.quorum = parse_quorum(text.substr(7));
  } else if (text.starts_with("first+")) {
    const std::string grace = text.substr(6);
    trigger.when = When::First;
    trigger.learn_grace = grace == "learnt";
    trigger.grace = trigger.learn_grace ? Duration(std::chrono::seconds(1)) : parse_grace(grace);
  } else {
    require(false,
            "unknown trigger '{}'; there are all, first, first+SECONDS, first+learnt, majority, "
            "quorum:K, need",
            text);
  }
  return trigger;
}

}  // namespace

std::optional<std::uint32_t> default_sync_period(const topology::Algorithm& algorithm) {
  return algorithm.cadence == topology::Cadence::EveryStep ? std::nullopt : std::optional(10U);
}

PlanOfRounds plan_rounds(const comm::Workers& workers, const Options& options) {
  PlanOfRounds plan;
  if (options.algorithm == "alone") {
    return plan;
  }
  using topology::Payload;
  plan.algorithm = &topology::find_algorithm(options.algorithm);
  const topology::Algorithm& row = *plan.algorithm;
  const auto size = static_cast<std::uint32_t>(workers.size());
  require(!options.group_size || *options.group_size <= size,
          "groups of {} in a job of {} worker{}", options.group_size.value_or(0), size,
          size == 1 ? "" : "s");
  require(!options.group_size || *options.group_size > 0, "groups of 0 workers");
  require(!options.sync_period || *options.sync_period > 0, "a sync period of 0 steps");
  require(!options.steps || *options.steps > 0, "0 steps");
  plan.schedule_name =
      options.schedule.empty() ? std::string(row.schedules.front()) : options.schedule;
  topology::ScheduleOptions schedule;
  schedule.workers = size;
  schedule.per_node = per_node(workers);
  schedule.group_size = options.group_size;
  schedule.peers = options.peers;
  schedule.seed = options.seed;
  plan.schedule = topology::make_schedule(plan.schedule_name, schedule);

  comm::StepOptions& steps = plan.steps;
  steps.algorithm = plan.algorithm;
  steps.schedule = plan.schedule.get();
  steps.steps = options.steps.value_or(std::numeric_limits<std::uint64_t>::max() / 2);
  steps.together = options.steps.has_value();
  steps.sync_period = options.sync_period ? options.sync_period : default_sync_period(row);
  steps.order = parse_order(options.averaging, row);
  steps.overlap = options.overlap;
  steps.gradient_at_mixed = options.gradient_at_mixed;
  steps.bf16 = options.bf16;
  require(!options.gradient_at_mixed || row.payload == Payload::HeldModel,
          "{} takes gradients where it always does; gradients at the mixed model are for starling",
          row.name);
  require(!options.bf16 || row.payload != Payload::Gradients,
          "bf16 is for averages of models: gradients would lose what rounding takes away");
  comm::TriggerOptions trigger = comm::trigger_of(row);
  if (!options.trigger.empty()) {
    trigger = parse_trigger(options.trigger);
    require(trigger.when != comm::TriggerOptions::When::Need || row.payload == Payload::HeldModel,
            "the trigger 'need' is for models that the engine holds (starling)");
  } else if (!options.overlap && row.payload == Payload::HeldModel) {
    trigger.when = comm::TriggerOptions::When::All;
  }
  trigger.age_bound = options.age_bound.value_or(static_cast<std::uint32_t>(trigger.age_bound));
  trigger.seed = options.seed;
  steps.trigger = trigger;
  return plan;
}

}  // namespace starling::train
