#include "starling/train/optimizer.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

#include "starling/base/error.h"

namespace starling::train {

namespace {

template <class Config>
inline constexpr bool kIsSgd = std::is_same_v<Config, SGD>;
template <class Config>
inline constexpr bool kIsDecoupled =
    std::is_same_v<Config, AdamW> || std::is_same_v<Config, AccumAdamW>;
template <class Config>
inline constexpr bool kIsAccumulated =
    std::is_same_v<Config, AccumAdam> || std::is_same_v<Config, AccumAdamW>;

template <class Config>
std::uint32_t window_of(const Config& config) {
  if constexpr (kIsAccumulated<Config>) {
    return config.window;
  } else {
    return 1;
  }
}

void require_at_least_0(std::string_view who, std::string_view what, double value) {
  require(std::isfinite(value) && value >= 0, "{}: {} must be a number of at least 0, and is {}",
          who, what, value);
}

void require_ranges(const SGD& config, std::string_view who, comm::Type /*type*/) {
  require_at_least_0(who, "momentum", config.momentum);
  require(std::isfinite(config.dampening), "{}: dampening must be a number, and is {}", who,
          config.dampening);
  require(!config.nesterov || (config.momentum > 0 && config.dampening == 0),
          "{}: nesterov needs momentum and no dampening, and has momentum {} and dampening {}", who,
          config.momentum, config.dampening);
}

template <class Config>
void require_ranges(const Config& config, std::string_view who, comm::Type type) {
  const auto beta = [&](std::string_view what, double value) {
    require(value >= 0 && value < 1, "{}: {} must be at least 0 and below 1, and is {}", who, what,
            value);
  };
  beta("beta1", config.beta1);
  beta("beta2", config.beta2);
  const double epsilon =
      type == comm::Type::Float32 ? static_cast<float>(config.epsilon) : config.epsilon;
  require(std::isfinite(epsilon) && epsilon > 0, "{}: epsilon must be above 0 (as a {}), and is {}",
          who, name_of(type), config.epsilon);
  require(window_of(config) >= 1, "{}: the window must be at least 1 step, and is {}", who,
          window_of(config));
}

std::vector<std::string_view> names_of_state(const Fused& optimizer) {
  return std::visit(
      []<class Config>(const Config& config) -> std::vector<std::string_view> {
        if constexpr (kIsSgd<Config>) {
          return config.momentum == 0 ? std::vector<std::string_view>{}
                                      : std::vector<std::string_view>{"momentum"};
        } else if (window_of(config) > 1) {
          return {"first_moment", "second_moment", "accumulated"};
        } else {
          return {"first_moment", "second_moment"};
        }
      },
      optimizer);
}

template <typename T>
kernels::SgdStep<T> step_of(const SGD& config, std::int64_t t, double lr, double decay) {
  return {.lr = static_cast<T>(lr),
          .momentum = static_cast<T>(config.momentum),
          .dampening = static_cast<T>(config.dampening),
          .decay = static_cast<T>(decay),
          .nesterov = config.nesterov,
          .first = t == 1};
}

template <typename T, class Config>
kernels::AdamStep<T> step_of(const Config& config, std::int64_t t, double lr, double decay) {
  const std::int64_t window = window_of(config);
  const std::int64_t windows = (t + window - 1) / window;  // that have begun
  const auto k = static_cast<double>(windows);
  return {.lr = static_cast<T>(lr),
          .beta1 = static_cast<T>(config.beta1),
          .rest1 = static_cast<T>(1 - config.beta1),
          .beta2 = static_cast<T>(config.beta2),
          .rest2 = static_cast<T>(1 - config.beta2),
          .epsilon = static_cast<T>(config.epsilon),
          .decay = static_cast<T>(kIsDecoupled<Config> ? 0 : decay),
          .shrink = static_cast<T>(kIsDecoupled<Config> ? 1 - lr * decay : 1),
          .correction1 = static_cast<T>(1 - std::pow(config.beta1, k)),
          .correction2 = static_cast<T>(1 - std::pow(config.beta2, k)),
          .window = static_cast<std::uint32_t>(window),
          .ends_window = t % window == 0};
}

}  // namespace

std::string_view name_of(const Fused& optimizer) {
  static constexpr std::string_view kNames[] = {"sgd", "adam", "adamw", "accum-adam",
                                                "accum-adamw"};
  static_assert(std::size(kNames) == std::variant_size_v<Fused>);
  return kNames[optimizer.index()];
}

double lr_of(const Fused& optimizer) {
  return std::visit([](const auto& config) { return config.lr; }, optimizer);
}

void FusedOptimizer::Free::operator()(std::byte* memory) const { std::free(memory); }

FusedOptimizer::FusedOptimizer(const Fused& config, comm::Type type, std::size_t elements)
    : config_(config), type_(type), elements_(elements) {
  std::visit(
      [&](const auto& c) {
        const std::string_view who = name_of(config);
        require_at_least_0(who, "the learning rate", c.lr);
        require_at_least_0(who, "weight decay", c.weight_decay);
        require_ranges(c, who, type);
      },
      config);
  constexpr std::size_t kLine = 64;
  const std::size_t bytes = (elements * size_of(type) / kLine + 1) * kLine;
  for (std::size_t i = 0; i < names_of_state(config).size(); ++i) {
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kLine, bytes));
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    memory_.emplace_back(memory);
    std::memset(memory, 0, bytes);
  }
}

template <typename T>
bool FusedOptimizer::run(std::size_t begin, std::int64_t t, double lr_factor,
                         const ParameterGroup& group, const kernels::Streams<T>& streams) {
  check(type_ == comm::kTypeOf<T>, "an optimizer for {} updates {}", name_of(type_),
        name_of(comm::kTypeOf<T>));
  check(begin <= elements_ && streams.size <= elements_ - begin,
        "a piece of {} at {} of a model of {}", streams.size, begin, elements_);
  if (streams.gradient == nullptr) {
    return kernels::update_none(streams);
  }
  check(t >= 1, "step number {}", t);
  const auto memory = [&](std::size_t number) {
    return number < memory_.size() ? reinterpret_cast<T*>(memory_[number].get()) + begin : nullptr;
  };
  return std::visit(
      [&]<class Config>(const Config& config) {
        const double lr = config.lr * lr_factor * group.lr_factor;
        const auto step = step_of<T>(config, t, lr, config.weight_decay * group.decay_factor);
        if constexpr (kIsSgd<Config>) {
          return kernels::update_sgd(streams, step, memory(0));
        } else {
          return kernels::update_adam(streams, step, memory(0), memory(1), memory(2));
        }
      },
      config_);
}

bool FusedOptimizer::update(std::size_t begin, std::int64_t t, double lr_factor,
                            const ParameterGroup& group, const kernels::Streams<float>& streams) {
  return run(begin, t, lr_factor, group, streams);
}

bool FusedOptimizer::update(std::size_t begin, std::int64_t t, double lr_factor,
                            const ParameterGroup& group, const kernels::Streams<double>& streams) {
  return run(begin, t, lr_factor, group, streams);
}

std::vector<FusedOptimizer::State> FusedOptimizer::state() {
  const std::vector<std::string_view> names = names_of_state(config_);
  std::vector<State> result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    result.push_back({names[i], {type_, {memory_[i].get(), elements_ * size_of(type_)}}});
  }
  return result;
}

}  // namespace starling::train
