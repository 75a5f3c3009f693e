#include "starling/model/predict.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "starling/base/error.h"
#include "starling/base/time.h"
#include "starling/model/recurrence.h"
#include "starling/model/rows.h"

namespace starling::model {
namespace {

using topology::Trigger;

void check_buckets(const Setting& setting) {
  require(setting.buckets >= 1, "a prediction needs at least one bucket");
  require(setting.shares.empty() || setting.shares.size() == setting.buckets,
          "{} buckets, but shares of the backward pass for {}", setting.buckets,
          setting.shares.size());
  require(setting.updates.empty() || setting.updates.size() == setting.buckets,
          "{} buckets, but update times for {}", setting.buckets, setting.updates.size());
  const auto negative = [](double value) { return !(value >= 0); };
  require(std::none_of(setting.shares.begin(), setting.shares.end(), negative) &&
              std::none_of(setting.updates.begin(), setting.updates.end(), negative),
          "shares and update times are at least 0");
  const double sum = std::accumulate(setting.shares.begin(), setting.shares.end(), 0.0);
  require(setting.shares.empty() || std::abs(sum - 1) < 1e-6,
          "the shares of the backward pass add up to {}, not to 1", sum);
}

void check_trigger(const Setting& setting) {
  require(is_modelled(setting), "{} has no rounds that start when {}", setting.algorithm->name,
          topology::name_of(trigger_of(setting)));
  require(!setting.quorum || *setting.quorum >= 1, "a quorum is at least 1");
  require(setting.age_bound >= 0, "the age bound is at least 0");
  require(setting.grace >= 0 && setting.activation >= 0, "grace and activation are at least 0");
}

void check_setting(const Setting& setting) {
  require(setting.algorithm != nullptr && setting.schedule != nullptr && setting.costs != nullptr &&
              setting.times,
          "a prediction needs an algorithm, a schedule, times and costs");
  require(setting.workers >= 1 && setting.steps >= 1,
          "a prediction needs at least one worker and one step");
  require(!setting.sync_period || *setting.sync_period >= 1, "the sync period is at least 1");
  require(setting.sync_period || setting.algorithm->cadence != topology::Cadence::EveryPeriod,
          "{} needs a period (sync_period)", setting.algorithm->name);
  require(!setting.order || topology::has_orders(*setting.algorithm), "{} has no choice of order",
          setting.algorithm->name);
  check_buckets(setting);
  check_trigger(setting);
}

}  // namespace

Times times_of(const ComputeTimes& compute, std::optional<Delay> delay) {
  return [compute, delay = std::move(delay)](Rank worker, Step step) {
    const ComputeTime time = compute.at(worker, step);
    return StepTime{.delay = delay ? seconds(delay->delay(worker, step)) : 0,
                    .forward = seconds(time.forward),
                    .backward = seconds(time.backward)};
  };
}

Prediction predict(const Setting& setting) {
  check_setting(setting);
  RoundsOfSteps rounds(setting);
  Observation observed(setting, rounds.period());
  const Walk walk{setting, rounds, observed};
  switch (family_of(setting)) {
    case Family::AllReduce:
      walk_all_reduce(walk);
      break;
    case Family::Behind:
      walk_behind(walk);
      break;
    case Family::InPerson:
      walk_in_person(walk);
      break;
    case Family::Activated:
      walk_activated(walk);
      break;
    case Family::Held:
      walk_held(walk);
      break;
  }
  return observed.result();
}

}  // namespace starling::model
