// What the recurrences read off a row of the table of algorithms and the switches of a setting.
#pragma once

#include <cstdint>

#include "starling/model/setting.h"

namespace starling::model {

// Where in a step a worker hands over what it contributes.
enum class Place : std::uint8_t {
  AfterUpdate,        // x += U; round of x
  AfterComputation,   // round of gradients; x += U
  BesideComputation,  // round of x beside the gradient; x = average + U
};
Place place_of(const Setting& setting);

topology::Trigger trigger_of(const Setting& setting);

enum class Family : std::uint8_t { AllReduce, Behind, InPerson, Activated, Held };
Family family_of(const Setting& setting);

// Whether there is a recurrence for rounds of this row that start so.
bool is_modelled(const Setting& setting);

}  // namespace starling::model
