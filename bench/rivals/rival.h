// An all-reduce (sum of floats) to be measured, as one rank of it sees it. Every rank calls the
// same functions in the same order. One thread.
//
// The inputs are pattern.h's; what they add up to is exact in floats, in whatever order.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace starling::rivals {

enum class Combine { Largest, Total };

class Rival {
 public:
  virtual ~Rival() = default;

  virtual int rank() const = 0;
  // Names of the ways in which this rival can do it. At least one.
  virtual std::vector<std::string> methods() const = 0;

  // Buffers for that many floats, inputs filled in. Replaces those before.
  virtual void prepare(std::size_t floats) = 0;
  virtual void barrier() = 0;
  virtual void all_reduce(std::size_t method) = 0;
  // Makes the results wrong, at least in a few places, and the inputs right, so that correct()
  // speaks of the next all_reduce().
  virtual void spoil() = 0;
  // Whether this rank's result is the sum of all inputs.
  virtual bool correct() const = 0;

  // Element by element over all ranks; every rank has the result.
  virtual void combine(std::vector<double>& values, Combine how) = 0;
};

}  // namespace starling::rivals
