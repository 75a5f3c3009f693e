#include "starling/train/module_parameters.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "starling/base/error.h"

namespace starling::train {
namespace {

using Listener = std::function<void(std::size_t)>;

// Outlives the parameters if somebody keeps a graph: then nobody listens any more.
struct Hook final : torch::autograd::FunctionPostHook {
  Hook(std::weak_ptr<Listener> whom, std::size_t which)
      : listener(std::move(whom)), parameter(which) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    if (const auto told = listener.lock(); told && *told) {
      (*told)(parameter);
    }
    return outputs;
  }
  std::weak_ptr<Listener> listener;
  std::size_t parameter;
};

std::string shape_of(const at::Tensor& tensor) {
  std::string text = "[";
  for (const std::int64_t size : tensor.sizes()) {
    text += fmt::format("{}{}", text.size() > 1 ? ", " : "", size);
  }
  return text + "]";
}

struct TypeName {
  at::ScalarType type;
  std::string_view name;
};
constexpr TypeName kTypeNames[] = {{at::kDouble, "F64"},    {at::kFloat, "F32"}, {at::kHalf, "F16"},
                                   {at::kBFloat16, "BF16"}, {at::kLong, "I64"},  {at::kInt, "I32"},
                                   {at::kShort, "I16"},     {at::kChar, "I8"},   {at::kByte, "U8"},
                                   {at::kBool, "BOOL"}};

Stored stored_tensor(std::string name, const at::Tensor& tensor) {
  const auto* const type =
      std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                   [&](const TypeName& known) { return known.type == tensor.scalar_type(); });
  require(type != std::end(kTypeNames), "{} is of type {}, which cannot be stored", name,
          c10::toString(tensor.scalar_type()));
  const at::Tensor plain = tensor.detach().contiguous();
  const auto* data = static_cast<const std::byte*>(plain.data_ptr());
  return {.name = std::move(name),
          .type = std::string(type->name),
          .shape = tensor.sizes().vec(),
          .bytes = {data, data + plain.nbytes()}};
}

// A tensor on its bytes, which outlive it.
at::Tensor tensor_of(const Stored& stored) {
  const auto* const type =
      std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                   [&](const TypeName& known) { return known.name == stored.type; });
  require(type != std::end(kTypeNames), "{} is stored as {}, which is not known", stored.name,
          stored.type);
  at::Tensor tensor = at::from_blob(const_cast<std::byte*>(stored.bytes.data()), stored.shape,
                                    at::TensorOptions(type->type));
  require(tensor.nbytes() == stored.bytes.size(), "{} is stored with {} bytes, not {}", stored.name,
          stored.bytes.size(), tensor.nbytes());
  return tensor;
}

// The stored tensor of that name, if it fits `like` in shape.
at::Tensor find_like(const State& state, const std::string& name, const at::Tensor& like) {
  const Stored* stored = state.find(name);
  require(stored != nullptr, "the checkpoint is of another model or optimizer: it has no {}", name);
  at::Tensor value = tensor_of(*stored);
  require(value.sizes() == like.sizes(),
          "the checkpoint is of another model: {} is {} there and {} here", name, shape_of(value),
          shape_of(like));
  return value;
}

void require_cpu(const std::string& name, const at::Tensor& tensor) {
  require(tensor.device().is_cpu(), "{} lies on {}: only models on the CPU are supported yet", name,
          tensor.device().str());
  require(!tensor.is_sparse() && !tensor.is_quantized(), "{} is sparse or quantized", name);
}

}  // namespace

struct ModuleParameters::State {
  struct Trainable {
    at::Tensor tensor;
    at::Tensor master;    // its part of the flat model, if it is not a view
    at::Tensor gradient;  // as the flat model lies, if the own one lies otherwise
    std::shared_ptr<torch::autograd::Node> accumulator;
    std::size_t begin = 0;
  };
  explicit State(torch::nn::Module& owner) : module(owner) {}
  // Of the flat model, or of memory that lies as it does.
  at::Tensor view_of(std::size_t parameter, std::byte* memory) const;
  torch::nn::Module& module;
  std::vector<Trainable> trainable;
  std::vector<ParameterFacts> facts;
  std::vector<std::pair<std::string, at::Tensor>> all;  // parameters and buffers
  std::vector<std::string> keys;                        // of them, in a stored state
  std::vector<at::Tensor> float_buffers;
  std::shared_ptr<Listener> listener = std::make_shared<Listener>();
  at::ScalarType type = at::kFloat;
  at::Tensor flat;
  bool keep_gradients = false;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::vector<double> rates;  // of its groups
};

ModuleParameters::ModuleParameters(torch::nn::Module& module)
    : state_(std::make_unique<State>(module)) {
  State& s = *state_;
  for (const auto& item : module.named_parameters(true)) {
    const at::Tensor& tensor = item.value();
    const auto is_it = [&](const auto& known) { return known.second.is_same(tensor); };
    if (!tensor.defined() || std::any_of(s.all.begin(), s.all.end(), is_it)) {
      continue;  // a tensor that is registered twice is one parameter
    }
    require_cpu("parameter " + item.key(), tensor);
    s.all.emplace_back("parameter " + item.key(), tensor);
    s.keys.push_back("parameter/" + item.key());
    if (!tensor.requires_grad()) {
      s.all.back().first += " (frozen)";
      continue;
    }
    require(at::isFloatingType(tensor.scalar_type()), "parameter {} is of type {}", item.key(),
            c10::toString(tensor.scalar_type()));
    s.type = tensor.scalar_type() == at::kDouble ? at::kDouble : s.type;
    s.facts.push_back({item.key(), static_cast<std::size_t>(tensor.numel()),
                       static_cast<std::size_t>(tensor.dim())});
    auto accumulator = torch::autograd::impl::grad_accumulator(tensor);
    accumulator->add_post_hook(std::make_unique<Hook>(s.listener, s.trainable.size()));
    s.trainable.push_back({tensor, {}, {}, std::move(accumulator), 0});
  }
  for (const auto& item : module.named_buffers(true)) {
    if (item.value().defined()) {
      require_cpu("buffer " + item.key(), item.value());
      s.all.emplace_back("buffer " + item.key(), item.value());
      s.keys.push_back("buffer/" + item.key());
      if (at::isFloatingType(item.value().scalar_type())) {
        s.float_buffers.push_back(item.value());
      }
    }
  }
  require(!s.trainable.empty(), "the model has no parameters that can be trained");
}

ModuleParameters::~ModuleParameters() = default;

std::span<const ParameterFacts> ModuleParameters::facts() const { return state_->facts; }

comm::Type ModuleParameters::type() const {
  return state_->type == at::kDouble ? comm::Type::Float64 : comm::Type::Float32;
}

std::string ModuleParameters::description() const {
  std::string text;
  for (const auto& [name, tensor] : state_->all) {
    text += fmt::format("{} {} {}\n", name, shape_of(tensor), c10::toString(tensor.scalar_type()));
  }
  return text;
}

std::vector<std::byte> ModuleParameters::values() const {
  std::vector<std::byte> bytes;
  for (const auto& [name, tensor] : state_->all) {
    const at::Tensor plain = tensor.detach().contiguous();
    const auto* data = static_cast<const std::byte*>(plain.data_ptr());
    bytes.insert(bytes.end(), data, data + plain.nbytes());
  }
  return bytes;
}

void ModuleParameters::set_values(std::span<const std::byte> values) {
  const at::NoGradGuard no_gradients;
  std::size_t begin = 0;
  for (auto& [name, tensor] : state_->all) {
    at::Tensor plain = at::empty(tensor.sizes(), tensor.options().memory_format(c10::nullopt));
    check(begin + plain.nbytes() <= values.size(), "values of another model");
    if (plain.nbytes() != 0) {
      std::memcpy(plain.data_ptr(), values.data() + begin, plain.nbytes());
    }
    begin += plain.nbytes();
    tensor.detach().copy_(plain);
  }
}

std::vector<Stored> ModuleParameters::stored() const {
  std::vector<Stored> tensors;
  for (std::size_t i = 0; i < state_->all.size(); ++i) {
    const at::Tensor& own = state_->all[i].second;
    const auto is_it = [&](const State::Trainable& known) { return known.tensor.is_same(own); };
    const auto trained = std::find_if(state_->trainable.begin(), state_->trainable.end(), is_it);
    const bool has_master = trained != state_->trainable.end() && trained->master.defined();
    tensors.push_back(stored_tensor(state_->keys[i], has_master ? trained->master : own));
  }
  return tensors;
}

void ModuleParameters::restore(const train::State& state) {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < state_->all.size(); ++i) {
    at::Tensor own = state_->all[i].second.detach();
    const at::Tensor value = find_like(state, state_->keys[i], own);
    require(value.scalar_type() == own.scalar_type() ||
                (value.scalar_type() == state_->type && at::isFloatingType(own.scalar_type())),
            "the checkpoint is of another model: {} is {} there and {} here", state_->keys[i],
            c10::toString(value.scalar_type()), c10::toString(own.scalar_type()));
    own.copy_(value);
  }
  for (const Stored& stored : state.tensors) {
    const bool is_value =
        stored.name.starts_with("parameter/") || stored.name.starts_with("buffer/");
    require(!is_value || std::find(state_->keys.begin(), state_->keys.end(), stored.name) !=
                             state_->keys.end(),
            "the checkpoint is of another model: it has {}, which this one has not", stored.name);
  }
}

void ModuleParameters::restore_masters(const train::State& state) {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < state_->trainable.size(); ++i) {
    State::Trainable& own = state_->trainable[i];
    if (own.master.defined()) {
      own.master.copy_(find_like(state, "parameter/" + state_->facts[i].name, own.master));
    }
  }
}

at::Tensor ModuleParameters::State::view_of(std::size_t parameter, std::byte* memory) const {
  const Trainable& own = trainable[parameter];
  const at::Tensor& form = own.master.defined() ? own.master : own.tensor;
  return at::from_blob(memory + own.begin * (type == at::kDouble ? 8 : 4), form.sizes(),
                       form.strides(), at::TensorOptions(type));
}

Stored ModuleParameters::cut(std::size_t parameter, const std::byte* memory,
                             std::string name) const {
  return stored_tensor(std::move(name), state_->view_of(parameter, const_cast<std::byte*>(memory)));
}

void ModuleParameters::paste(std::size_t parameter, std::byte* memory, const train::State& state,
                             const std::string& name) const {
  const at::NoGradGuard no_gradients;
  at::Tensor into = state_->view_of(parameter, memory);
  into.copy_(find_like(state, name, into));
}

std::vector<Stored> ModuleParameters::stored_beside() const {
  std::vector<Stored> tensors;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard lock(generator.mutex());
    tensors.push_back(stored_tensor("random/cpu", generator.get_state()));
  }
  if (state_->optimizer) {
    torch::serialize::OutputArchive archive;
    state_->optimizer->save(archive);
    std::ostringstream stream;
    archive.save_to(stream);
    const std::string text = stream.str();
    const auto bytes = std::as_bytes(std::span(text));
    tensors.push_back({.name = "torch_optimizer",
                       .type = "U8",
                       .shape = {static_cast<std::int64_t>(bytes.size())},
                       .bytes = {bytes.begin(), bytes.end()}});
  }
  return tensors;
}

void ModuleParameters::restore_beside(const train::State& state) {
  if (const Stored* random = state.find("random/cpu")) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(generator.mutex());
    generator.set_state(tensor_of(*random).clone());
  }
  const Stored* optimizer = state.find("torch_optimizer");
  require(state.order.empty() || (optimizer != nullptr) == (state_->optimizer != nullptr),
          "the checkpoint was made with {}, and this is {}",
          optimizer != nullptr ? "an optimizer of torch" : "a fused optimizer",
          optimizer != nullptr ? "a fused one" : "one of torch");
  if (optimizer != nullptr && state_->optimizer) {
    std::istringstream stream(std::string(reinterpret_cast<const char*>(optimizer->bytes.data()),
                                          optimizer->bytes.size()));
    torch::serialize::InputArchive archive;
    archive.load_from(stream);
    state_->optimizer->load(archive);
  }
}

void ModuleParameters::on_gradient(std::function<void(std::size_t)> listener) {
  *state_->listener = std::move(listener);
}

void ModuleParameters::lay_out(const FlatLayout& layout) {
  State& s = *state_;
  const at::NoGradGuard no_gradients;
  s.flat = at::empty({static_cast<std::int64_t>(layout.elements())}, at::TensorOptions(s.type));
  for (const FlatLayout::Place& place : layout.places()) {
    State::Trainable& own = s.trainable[place.parameter];
    own.begin = place.begin;
    const auto begin = static_cast<std::int64_t>(place.begin);
    const bool dense = own.tensor.is_non_overlapping_and_dense();
    at::Tensor view = dense ? s.flat.as_strided(own.tensor.sizes(), own.tensor.strides(), begin)
                            : s.flat.narrow(0, begin, own.tensor.numel()).view(own.tensor.sizes());
    view.copy_(own.tensor.detach());
    if (own.tensor.scalar_type() == s.type) {
      own.tensor.set_data(view);
    } else {
      own.master = view;
    }
  }
}

comm::Blob ModuleParameters::flat() const {
  return {static_cast<std::byte*>(state_->flat.data_ptr()), state_->flat.nbytes()};
}

void ModuleParameters::set_gradients(double value) {
  state_->keep_gradients = true;
  for (State::Trainable& own : state_->trainable) {
    own.tensor.mutable_grad() = at::full_like(own.tensor.detach(), value);
  }
}

std::vector<double> ModuleParameters::buffers() const {
  std::vector<double> values;
  for (const at::Tensor& buffer : state_->float_buffers) {
    const at::Tensor plain = buffer.detach().to(at::kDouble).contiguous();
    const auto* data = plain.data_ptr<double>();
    values.insert(values.end(), data, data + plain.numel());
  }
  return values;
}

void ModuleParameters::set_buffers(std::span<const double> values) {
  const at::NoGradGuard no_gradients;
  std::size_t begin = 0;
  for (at::Tensor& buffer : state_->float_buffers) {
    at::Tensor plain = at::empty(buffer.sizes(), at::TensorOptions(at::kDouble));
    const auto count = static_cast<std::size_t>(plain.numel());
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(begin), count,
                plain.data_ptr<double>());
    begin += count;
    buffer.copy_(plain);
  }
}

void ModuleParameters::unchanged(const std::function<void()>& look) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor random = [&] {
    const std::lock_guard lock(generator.mutex());
    return generator.get_state();
  }();
  const std::vector<std::shared_ptr<torch::nn::Module>> below = state_->module.modules(false);
  std::vector<bool> training;
  for (const auto& module : below) {
    training.push_back(module->is_training());
  }
  const bool own = state_->module.is_training();
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers;  // and what they hold
  for (const at::Tensor& buffer : state_->module.buffers(true)) {
    if (buffer.defined()) {
      buffers.emplace_back(buffer, buffer.clone());
    }
  }
  std::exception_ptr error;
  try {
    look();
  } catch (...) {
    error = std::current_exception();
  }
  for (auto& [buffer, before] : buffers) {
    buffer.copy_(before);
  }
  state_->module.train(own);
  for (std::size_t i = 0; i < below.size(); ++i) {
    below[i]->train(training[i]);
  }
  {
    const std::lock_guard lock(generator.mutex());
    generator.set_state(random);
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

void ModuleParameters::use(const MakeOptimizer& make) {
  State& s = *state_;
  std::vector<at::Tensor> tensors;
  for (const State::Trainable& own : s.trainable) {
    require(own.tensor.scalar_type() == s.type,
            "an optimizer of torch needs parameters of one type; use a fused one");
    tensors.push_back(own.tensor);
  }
  s.optimizer = make(std::move(tensors));
  require(s.optimizer != nullptr, "there is no optimizer");
  require(dynamic_cast<torch::optim::LBFGS*>(s.optimizer.get()) == nullptr,
          "L-BFGS computes the loss itself, several times a step: it cannot be used here");
  for (const auto& group : s.optimizer->param_groups()) {
    s.rates.push_back(group.options().get_lr());
  }
}

const std::byte* ModuleParameters::gradient(std::size_t parameter) {
  State::Trainable& own = state_->trainable[parameter];
  if (own.gradient.defined()) {
    return static_cast<const std::byte*>(own.gradient.data_ptr());
  }
  const at::Tensor& gradient = own.tensor.grad();
  if (!gradient.defined()) {
    return nullptr;
  }
  const at::Tensor& form = own.master.defined() ? own.master : own.tensor;
  if (gradient.scalar_type() == state_->type && !gradient.is_sparse() &&
      gradient.strides() == form.strides()) {
    return static_cast<const std::byte*>(gradient.data_ptr());
  }
  const at::NoGradGuard no_gradients;
  own.gradient = at::empty_strided(form.sizes(), form.strides(), at::TensorOptions(state_->type));
  own.gradient.copy_(gradient.is_sparse() ? gradient.to_dense() : gradient);
  return static_cast<const std::byte*>(own.gradient.data_ptr());
}

void ModuleParameters::drop_gradient(std::size_t parameter) {
  State::Trainable& own = state_->trainable[parameter];
  own.gradient.reset();
  if (!state_->keep_gradients) {
    own.tensor.mutable_grad().reset();
  }
}

void ModuleParameters::moved(std::size_t parameter) {
  State::Trainable& own = state_->trainable[parameter];
  if (own.master.defined()) {
    own.tensor.detach().copy_(own.master);
  }
}

void ModuleParameters::torch_step(double lr_factor, const std::byte* mean, double scale) {
  State& s = *state_;
  const at::NoGradGuard no_gradients;
  for (State::Trainable& own : s.trainable) {
    if (mean != nullptr) {
      const std::size_t offset = own.begin * (s.type == at::kDouble ? 8 : 4);
      at::Tensor view = at::from_blob(const_cast<std::byte*>(mean) + offset, own.tensor.sizes(),
                                      own.tensor.strides(), at::TensorOptions(s.type));
      own.tensor.mutable_grad() = view * scale;
    } else if (own.tensor.grad().defined() && scale != 1) {
      own.tensor.mutable_grad().mul_(scale);
    }
  }
  auto& groups = s.optimizer->param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].options().set_lr(s.rates[i] * lr_factor);
  }
  s.optimizer->step();
}

}  // namespace starling::train
