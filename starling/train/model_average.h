// The average of all workers' models, beside the own one: for looking at it, and for going on with
// it.
//
// Collective: the constructor and distance(), on all living workers in the same order. Between two
// steps, on the application's thread.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "starling/comm/arithmetic.h"
#include "starling/comm/blob.h"
#include "starling/comm/buffer.h"
#include "starling/comm/workers.h"
#include "starling/train/assembly.h"
#include "starling/train/data_parallel.h"
#include "starling/train/module_parameters.h"

namespace starling::train {

// What a model is made of: the flat parameters, and its buffers of floating point.
struct ModelValues {
  comm::ConstBlob flat;
  std::span<const double> buffers;
};

// Runs `look` with `others` in the model, and puts the own values back.
void look_at(ModuleParameters& parameters, const ModelValues& others, const ModelValues& own,
             const std::function<void()>& look);

class ModelAverage {
 public:
  // All outlive this. Requires: `parameters` are laid out.
  ModelAverage(Assembly& assembly, comm::Workers& workers, ModuleParameters& parameters);

  Consensus distance() const;
  void look(const std::function<void()>& look) const;
  // From now on the model is the average.
  void take_over() const;

 private:
  comm::Buffer buffer(const comm::PoolMemory& memory) const {
    return {type_, memory.blob().slice(0, parameters_.flat().size)};
  }
  ModelValues own_values() const { return {buffer(own_).blob, own_buffers_}; }
  ModelValues mean_values() const { return {buffer(mean_).blob, mean_buffers_}; }

  Assembly& assembly_;
  ModuleParameters& parameters_;
  comm::Type type_;
  comm::PoolMemory own_;
  comm::PoolMemory mean_;
  std::vector<double> own_buffers_;
  std::vector<double> mean_buffers_;
  std::size_t members_ = 0;
};

}  // namespace starling::train
