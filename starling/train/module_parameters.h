// The parameters and buffers of a torch module: what they are, as views of one flat memory, and
// their gradients. The application's thread.
//
// Parameters of the flat model's type become views of it; narrower ones (half, bfloat16, float in
// a model that has doubles) keep their own memory and get the flat model's values, rounded,
// whenever those move: the flat model is their master copy.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "starling/comm/buffer.h"
#include "starling/train/flat_layout.h"
#include "starling/train/replica.h"
#include "starling/train/state.h"

namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace starling::train {

class ModuleParameters final : public Parameters {
 public:
  using MakeOptimizer =
      std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;

  // Throws Error{Input} for what cannot be trained: no parameters, another device than the CPU.
  explicit ModuleParameters(torch::nn::Module& module);
  ~ModuleParameters() override;

  // The trainable ones, as registered.
  std::span<const ParameterFacts> facts() const;
  // The widest of their types.
  comm::Type type() const;
  // A line for each parameter and buffer: name, shape, type.
  std::string description() const;
  // All values of parameters and buffers, one after the other, and back.
  std::vector<std::byte> values() const;
  void set_values(std::span<const std::byte> values);

  // All parameters and buffers as "parameter/NAME" and "buffer/NAME"; of narrower parameters what
  // the flat model has, once there is one.
  std::vector<Stored> stored() const;
  // And back. Throws Error{Input} naming the first that differs from this model in name, shape or
  // type. What the flat model has more precisely is put there by restore_masters(), once there is
  // one.
  void restore(const State& state);
  void restore_masters(const State& state);
  // The part of `parameter` in memory that lies as the flat model does (of an optimizer), and back;
  // `name` is what it is called. Throws Error{Input} if it is not there, or another's.
  Stored cut(std::size_t parameter, const std::byte* memory, std::string name) const;
  void paste(std::size_t parameter, std::byte* memory, const State& state,
             const std::string& name) const;
  // "random/cpu" and, if use() was called, "torch_optimizer"; and back, if they are there.
  std::vector<Stored> stored_beside() const;
  void restore_beside(const State& state);

  // Told whenever a gradient has been added to parameter `parameter`.
  void on_gradient(std::function<void(std::size_t parameter)> listener);

  // From now on parameters are views of a new flat memory.
  void lay_out(const FlatLayout& layout);
  comm::Blob flat() const;
  // As many zeros as gradients, that stay.
  void set_gradients(double value);

  // Buffers of floating point, as one row of doubles, and back.
  std::vector<double> buffers() const;
  void set_buffers(std::span<const double> values);
  // The modes (training or not) of all modules, the buffers, the state of torch's generator:
  // what evaluation might leave changed. Calls `look` and puts everything back.
  void unchanged(const std::function<void()>& look);

  // Throws Error{Input} if it cannot be used: it wants to compute the loss itself.
  void use(const MakeOptimizer& make);

  // Parameters
  const std::byte* gradient(std::size_t parameter) override;
  void drop_gradient(std::size_t parameter) override;
  void moved(std::size_t parameter) override;
  void torch_step(double lr_factor, const std::byte* mean, double scale) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace starling::train
