// Optimizers as data, and what runs them: one pass over a piece of the model (kernels/update.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "starling/comm/buffer.h"
#include "starling/kernels/update.h"

namespace starling::train {

// Learning rates are multiplied by the factor of a LearningRate (learning_rate.h).
struct SGD {
  double lr = 0.1;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;  // added to the gradient
  bool nesterov = false;
};
struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  // added to the gradient
};
struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // decoupled
};
// Adam whose moments see means of `window` gradients; the model moves at every step. A window of
// about half the number of workers keeps the learning rate of a large batch.
struct AccumAdam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  std::uint32_t window = 4;
};
struct AccumAdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  std::uint32_t window = 4;
};
using Fused = std::variant<SGD, Adam, AdamW, AccumAdam, AccumAdamW>;

// "sgd", "adam", "adamw", "accum-adam", "accum-adamw"
std::string_view name_of(const Fused& optimizer);
double lr_of(const Fused& optimizer);

// How one parameter differs from the others.
struct ParameterGroup {
  double lr_factor = 1;
  double decay_factor = 1;
};

// The state of an optimizer for a flat model, and its step. A piece of the model is a parameter, or
// part of one; its steps are counted by the caller, from 1, for a piece that has no gradient in a
// step takes none. Threads: one at a time per piece.
class FusedOptimizer {
 public:
  // Throws Error{Input} that names the value that is out of range.
  FusedOptimizer(const Fused& config, comm::Type type, std::size_t elements);

  // The piece [begin, begin + streams.size) takes its step number `t`; with streams.gradient null
  // it is only mixed. Returns whether all that was written is finite.
  bool update(std::size_t begin, std::int64_t t, double lr_factor, const ParameterGroup& group,
              const kernels::Streams<float>& streams);
  bool update(std::size_t begin, std::int64_t t, double lr_factor, const ParameterGroup& group,
              const kernels::Streams<double>& streams);

  // What it remembers, for checkpoints and for a model that is laid out anew: name ("momentum",
  // "first_moment", "second_moment", "accumulated") and as many values as the model has.
  struct State {
    std::string_view name;
    comm::Buffer values;
  };
  std::vector<State> state();
  const Fused& config() const { return config_; }

 private:
  template <typename T>
  bool run(std::size_t begin, std::int64_t t, double lr_factor, const ParameterGroup& group,
           const kernels::Streams<T>& streams);

  struct Free {
    void operator()(std::byte* memory) const;
  };
  Fused config_;
  comm::Type type_;
  std::size_t elements_ = 0;
  // Zero at the start, as many as names_of_state() has, each at the beginning of a line.
  std::vector<std::unique_ptr<std::byte, Free>> memory_;
};

}  // namespace starling::train
