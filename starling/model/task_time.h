// What a worker does and when, as the recurrences find it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "starling/base/units.h"

namespace starling::model {

// F, B_k, C_k, U_k of the event graph; and what lies between.
enum class TaskKind : std::uint8_t { Delay, Forward, Backward, Exchange, Update, Wait };

struct TaskTime {
  TaskKind kind = TaskKind::Forward;
  Rank worker{};
  Step step{};             // of an exchange: whose update hands over what is exchanged
  std::size_t bucket = 0;  // rows that do not work bucket by bucket: 0
  double start = 0;
  double end = 0;
};

}  // namespace starling::model
