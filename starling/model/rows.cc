#include "starling/model/rows.h"

namespace starling::model {

using topology::Payload;
using topology::Trigger;

Place place_of(const Setting& setting) {
  const topology::Algorithm& row = *setting.algorithm;
  if (row.payload == Payload::Gradients) {
    return Place::AfterComputation;
  }
  const bool behind = row.one_step_behind && setting.overlap;
  const bool mixed_first = behind || row.gradient_at == topology::GradientAt::OwnMixedBeforeUpdate;
  const Order order = setting.order.value_or(mixed_first ? Order::Beside : Order::After);
  return order == Order::Beside ? Place::BesideComputation : Place::AfterUpdate;
}

Trigger trigger_of(const Setting& setting) {
  return setting.trigger.value_or(setting.algorithm->trigger);
}

Family family_of(const Setting& setting) {
  const topology::Algorithm& row = *setting.algorithm;
  if (row.payload == Payload::HeldModel || row.missing == topology::Missing::LatestModel) {
    return Family::Held;
  }
  if (trigger_of(setting) != Trigger::AllArrived) {
    return Family::Activated;
  }
  if (row.payload == Payload::Gradients) {
    return Family::AllReduce;
  }
  return row.one_step_behind && row.payload == Payload::Parameters ? Family::Behind
                                                                   : Family::InPerson;
}

bool is_modelled(const Setting& setting) {
  const Trigger trigger = trigger_of(setting);
  return family_of(setting) == Family::Held
             ? trigger == Trigger::WhenNeeded || trigger == Trigger::AllArrived ||
                   trigger == Trigger::OneSideArrived
             : trigger != Trigger::WhenNeeded;
}

}  // namespace starling::model
