// What is done about gradients that are too long, or not finite.
#pragma once

#include <cstdint>

namespace starling::train {

enum class Clip : std::uint8_t {
  None,
  Global,   // exact: the update waits for the last gradient, and with it what overlapped
  Delayed,  // by the norm of the step before: keeps the overlap
  Bucket,   // what is updated at once (a bucket, where updates overlap) by its own norm
};
enum class NonFinite : std::uint8_t {
  Stop,  // throws Error{Diverged} naming worker, parameter and step; nothing of it is published
  // A step whose gradient is not finite is skipped: the model is only averaged, the rounds go on.
  // As exact clipping does, this waits for the last gradient.
  Skip,
};

}  // namespace starling::train
