// Compiled without contraction: every operation is rounded by itself.
#include "tests/train/reference.h"

#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>

#include "starling/base/error.h"
#include "starling/topology/schedule.h"

namespace starling::test {
namespace {

template <typename T>
using Values = std::vector<T>;
template <typename T>
using Model = std::vector<Values<T>>;  // by parameter

// --- Numbers -------------------------------------------------------------------------------------

// To the nearest bf16, ties to even; finite numbers.
std::uint16_t bf16_bits(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += 0x7FFFU + ((bits >> 16) & 1U);
  return static_cast<std::uint16_t>(bits >> 16);
}

float as_bf16(float value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(bf16_bits(value)) << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

template <typename T>
T as_kind(T value, Kind kind) {
  switch (kind) {
    case Kind::Double:
      return value;
    case Kind::Float:
      return static_cast<T>(static_cast<float>(value));
    case Kind::Bf16:
      return static_cast<T>(as_bf16(static_cast<float>(value)));
  }
  return value;
}

// Neighbours are added level by level; an odd last one passes on as it is.
template <typename T>
T tree_sum(std::vector<T> terms) {
  while (terms.size() > 1) {
    std::vector<T> next;
    for (std::size_t i = 0; i + 1 < terms.size(); i += 2) {
      next.push_back(terms[i] + terms[i + 1]);
    }
    if (terms.size() % 2 == 1) {
      next.push_back(terms.back());
    }
    terms = std::move(next);
  }
  return terms.front();
}

// Sixteen sums, element i in number i mod 16, folded in halves.
template <typename T>
double squares(const Values<T>& values) {
  std::array<double, 16> sums{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    sums[i % 16] += value * value;
  }
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) {
      sums[j] += sums[j + half];
    }
  }
  return sums[0];
}

// --- One parameter's optimizer -------------------------------------------------------------------

template <typename T>
class Rule {
 public:
  Rule(const train::Fused& config, std::size_t elements, bool decays)
      : config_(config), decays_(decays), a_(elements), b_(elements), c_(elements) {}

  // x += U(scale g).
  void step(Values<T>& x, const Values<T>& g, T scale, double rate) {
    ++t_;
    std::visit([&](const auto& config) { run(config, x, g, scale, rate); }, config_);
  }

 private:
  void run(const train::SGD& config, Values<T>& x, const Values<T>& g, T scale, double rate) {
    const auto lr = static_cast<T>(config.lr * rate);
    const auto momentum = static_cast<T>(config.momentum);
    const auto decay = static_cast<T>(decays_ ? config.weight_decay : 0);
    const T rest = 1 - static_cast<T>(config.dampening);
    for (std::size_t i = 0; i < x.size(); ++i) {
      T d = gradient(g[i], scale, decay, x[i]);
      if (config.momentum != 0) {
        a_[i] = t_ == 1 ? d : momentum * a_[i] + rest * d;
        d = config.nesterov ? d + momentum * a_[i] : a_[i];
      }
      x[i] = x[i] - lr * d;
    }
  }

  template <class Config>
  void run(const Config& config, Values<T>& x, const Values<T>& g, T scale, double rate) {
    constexpr bool kDecoupled =
        std::is_same_v<Config, train::AdamW> || std::is_same_v<Config, train::AccumAdamW>;
    std::uint64_t window = 1;
    if constexpr (requires { config.window; }) {
      window = config.window;
    }
    const double lr = config.lr * rate;
    const double decay = decays_ ? config.weight_decay : 0;
    const std::uint64_t windows = (t_ + window - 1) / window;
    const auto k = static_cast<double>(windows);
    const auto correction1 = static_cast<T>(1 - std::pow(config.beta1, k));
    const auto correction2 = static_cast<T>(1 - std::pow(config.beta2, k));
    const T root = std::sqrt(correction2);
    const T rate_now = static_cast<T>(lr) * root / correction1;
    const T epsilon = static_cast<T>(config.epsilon) * root;
    const auto coupled = static_cast<T>(kDecoupled ? 0 : decay);
    const auto shrink = static_cast<T>(kDecoupled ? 1 - lr * decay : 1);
    const auto beta1 = static_cast<T>(config.beta1);
    const auto beta2 = static_cast<T>(config.beta2);
    const auto rest1 = static_cast<T>(1 - config.beta1);
    const auto rest2 = static_cast<T>(1 - config.beta2);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const T d = gradient(g[i], scale, coupled, x[i]);
      const T m = beta1 * a_[i] + rest1 * d;
      const T v = beta2 * b_[i] + rest2 * (d * d);
      x[i] = shrink * x[i] - rate_now * m / (std::sqrt(v) + epsilon);
      if (window == 1) {
        a_[i] = m;
        b_[i] = v;
        continue;
      }
      c_[i] = c_[i] + d * (1 / static_cast<T>(window));
      if (t_ % window == 0) {
        a_[i] = beta1 * a_[i] + rest1 * c_[i];
        b_[i] = beta2 * b_[i] + rest2 * (c_[i] * c_[i]);
        c_[i] = 0;
      }
    }
  }

  static T gradient(T g, T scale, T decay, T x) {
    const T scaled = scale == 1 ? g : scale * g;
    return decay == 0 ? scaled : scaled + decay * x;
  }

  train::Fused config_;
  bool decays_;
  std::uint64_t t_ = 0;
  Values<T> a_;
  Values<T> b_;
  Values<T> c_;
};

template <typename T>
std::vector<Rule<T>> rules_of(const Case& c) {
  std::vector<Rule<T>> rules;
  for (const Shape& shape : shapes()) {
    rules.emplace_back(optimizer_of(c), shape.elements(), shape.sizes.size() >= 2);
  }
  return rules;
}

// --- A worker's gradient -------------------------------------------------------------------------

// Nothing if the parameter is not used. Computed in the parameter's own type.
template <typename T>
std::optional<Values<T>> gradient_of(const Case& c, std::size_t worker, std::uint64_t step,
                                     std::size_t p, const Values<T>& x) {
  const std::size_t terms = terms_of(c, worker, step, p);
  if (terms == 0) {
    return std::nullopt;
  }
  const Kind kind = kind_of(c, p);
  Values<T> g(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t term = 0; term < terms; ++term) {
      const T wanted = as_kind(static_cast<T>(target(worker, step, term, p, i)), kind);
      const T by = as_kind(as_kind(x[i], kind) - wanted, kind);
      g[i] = term == 0 ? by : as_kind(g[i] + by, kind);
    }
  }
  return g;
}

// --- All workers ---------------------------------------------------------------------------------

template <typename T>
class Reference {
 public:
  Reference(const Case& c, std::size_t workers) : case_(c), workers_(workers) {
    for (std::size_t p = 0; p < shapes().size(); ++p) {
      Values<T> values(shapes()[p].elements());
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = as_kind(static_cast<T>(initial(0, p, i)), kind_of(c, p));
      }
      start_.push_back(std::move(values));
    }
    models_.assign(workers, start_);
    rules_.assign(workers, rules_of<T>(c));
    norms_.assign(workers, 0);
    numerators_ = models_;
    push_weights_.assign(workers, 1);
    if (c.algorithm != "all-reduce" && c.algorithm != "alone") {
      topology::ScheduleOptions options;
      options.workers = static_cast<std::uint32_t>(workers);
      options.per_node = options.workers;
      options.peers = c.peers;
      schedule_ = topology::make_schedule(schedule_name(), options);
    }
  }

  std::vector<std::uint64_t> run() {
    for (std::uint64_t step = 0; step < case_.steps; ++step) {
      if (case_.algorithm == "all-reduce") {
        all_reduce(step);
      } else if (case_.algorithm.ends_with("sgp")) {
        push(step);
      } else {
        own_updates(step);
      }
    }
    std::vector<std::uint64_t> prints;
    for (const Model<T>& model : models_) {
      prints.push_back(fingerprint(model));
    }
    return prints;
  }

 private:
  using Gradients = std::vector<std::optional<Values<T>>>;  // by parameter

  std::string schedule_name() const {
    return !case_.schedule.empty()          ? case_.schedule
           : case_.algorithm == "d-psgd"    ? "ring-neighbours"
           : case_.algorithm == "local-sgd" ? "complete"
                                            : "push";
  }

  Gradients gradients(std::size_t worker, std::uint64_t step) const {
    Gradients all;
    for (std::size_t p = 0; p < shapes().size(); ++p) {
      all.push_back(overflows(case_, worker, step)
                        ? std::nullopt
                        : gradient_of(case_, worker, step, p, models_[worker][p]));
    }
    return all;
  }

  double clip(std::size_t worker, const Gradients& gradients, double scale) {
    double sum = 0;
    for (const auto& gradient : gradients) {
      sum += gradient ? squares(*gradient) * scale * scale : 0;
    }
    const double before = norms_[worker];
    norms_[worker] = std::sqrt(sum);
    const double norm = case_.clip == "global"    ? norms_[worker]
                        : case_.clip == "delayed" ? before
                                                  : 0;
    return norm > kClipNorm ? kClipNorm / norm : 1;
  }

  void update(std::size_t worker, Model<T>& model, const Gradients& gradients, double scale,
              double rate) {
    const auto factor = static_cast<T>(scale * clip(worker, gradients, scale));
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      if (gradients[p] && !is_frozen(case_, p)) {
        rules_[worker][p].step(model[p], *gradients[p], factor, rate);
      }
    }
  }

  void all_reduce(std::uint64_t step) {
    const bool weighs = case_.quirk == "samples";
    std::vector<Gradients> all;
    std::vector<T> weights;
    for (std::size_t r = 0; r < workers_; ++r) {
      all.push_back(gradients(r, step));
      weights.push_back(static_cast<T>(samples(case_, r, step) / kBatch));
    }
    Gradients sum;
    for (std::size_t p = 0; p < shapes().size(); ++p) {
      Values<T> values(shapes()[p].elements());
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::vector<T> terms;
        for (std::size_t r = 0; r < workers_; ++r) {
          const T own = all[r][p] ? (*all[r][p])[i] : T{0};
          terms.push_back(weighs ? weights[r] * own : own);
        }
        values[i] = tree_sum(terms);
      }
      sum.push_back(std::move(values));
    }
    const double scale =
        weighs ? 1 / static_cast<double>(tree_sum(weights)) : 1 / static_cast<double>(workers_);
    for (std::size_t r = 0; r < workers_; ++r) {
      update(r, models_[r], sum, scale, 1);
    }
  }

  // Decentralized Adam, D-PSGD, alone: x = W x - U(gradient at x). Local SGD, and whoever averages
  // after the update: x = W (x - U(gradient at x)).
  void own_updates(std::uint64_t step) {
    std::vector<Gradients> all;
    for (std::size_t r = 0; r < workers_; ++r) {
      all.push_back(gradients(r, step));
    }
    const std::uint64_t period = case_.algorithm == "local-sgd" ? case_.period : 1;
    const bool averages = schedule_ && (step + 1) % period == 0;
    const bool after =
        case_.averaging == "after" || (case_.averaging.empty() && case_.algorithm == "local-sgd");
    if (averages && !after) {
      mix(models_, step / period);
    }
    for (std::size_t r = 0; r < workers_; ++r) {
      update(r, models_[r], all[r], 1, samples(case_, r, step) / kBatch);
    }
    if (averages && after) {
      mix(models_, step / period);
    }
  }

  // SGP: x = W (x - U(gradient at z)), overlapped x = W x - U(gradient at z); z = x / weight.
  void push(std::uint64_t step) {
    const bool overlapped = case_.algorithm == "overlapped-sgp";
    std::vector<Gradients> all;
    for (std::size_t r = 0; r < workers_; ++r) {
      all.push_back(gradients(r, step));
    }
    if (overlapped) {
      mix(numerators_, step);
      mix_weights(step);
    }
    for (std::size_t r = 0; r < workers_; ++r) {
      update(r, numerators_[r], all[r], 1, samples(case_, r, step) / kBatch);
    }
    if (!overlapped) {
      mix(numerators_, step);
      mix_weights(step);
    }
    for (std::size_t r = 0; r < workers_; ++r) {
      const auto share = static_cast<T>(1 / push_weights_[r]);
      for (std::size_t p = 0; p < shapes().size(); ++p) {
        for (std::size_t i = 0; i < models_[r][p].size(); ++i) {
          models_[r][p][i] = share * numerators_[r][p][i];
        }
      }
    }
  }

  void mix_weights(std::uint64_t step) {
    const std::vector<double> before = push_weights_;
    const auto view = topology::View::full(static_cast<std::uint32_t>(workers_));
    for (std::uint32_t r = 0; r < workers_; ++r) {
      const topology::Row row =
          schedule_->row(Step{static_cast<std::int64_t>(step)}, Rank{r}, view);
      const auto& edges = std::get<topology::Neighbours>(row);
      push_weights_[r] = edges.self_weight * before[r];
      for (const topology::Edge& edge : edges.in) {
        push_weights_[r] += edge.weight * before[edge.peer.index()];
      }
    }
  }

  void mix(std::vector<Model<T>>& models, std::uint64_t step) {
    const std::vector<Model<T>> before = models;
    const auto view = topology::View::full(static_cast<std::uint32_t>(workers_));
    for (std::uint32_t r = 0; r < workers_; ++r) {
      const topology::Row row =
          schedule_->row(Step{static_cast<std::int64_t>(step)}, Rank{r}, view);
      for (std::size_t p = 0; p < shapes().size(); ++p) {
        for (std::size_t i = 0; i < models[r][p].size() && !is_frozen(case_, p); ++i) {
          const auto at = [&](Rank who) { return before[who.index()][p][i]; };
          models[r][p][i] = std::holds_alternative<topology::Group>(row)
                                ? in_group(std::get<topology::Group>(row), at, Rank{r})
                                : of_neighbours(std::get<topology::Neighbours>(row), at, Rank{r});
        }
      }
    }
  }

  template <typename At>
  T in_group(const topology::Group& group, const At& at, Rank self) const {
    std::vector<T> terms;
    for (const Rank member : group.members) {
      terms.push_back(sent(at(member)));
    }
    const auto members = static_cast<double>(terms.size());
    const double other = group.is_uniform() ? 1 / members : (1 - group.self_weight) / (members - 1);
    const auto of_own = static_cast<T>(group.is_uniform() ? 0 : group.self_weight - other);
    const T part = static_cast<T>(other) * tree_sum(terms);
    return case_.bf16 ? (at(self) + part) - (1 - of_own) * sent(at(self))
                      : of_own * at(self) + part;
  }

  template <typename At>
  T of_neighbours(const topology::Neighbours& row, const At& at, Rank self) const {
    std::vector<T> terms;
    bool own = false;
    const auto add_own = [&] {
      terms.push_back(static_cast<T>(row.self_weight) * at(self));
      own = true;
    };
    for (const topology::Edge& edge : row.in) {
      if (!own && self < edge.peer) {
        add_own();
      }
      terms.push_back(static_cast<T>(edge.weight) * at(edge.peer));
    }
    if (!own) {
      add_own();
    }
    return tree_sum(terms);
  }

  T sent(T value) const {
    return case_.bf16 ? static_cast<T>(as_bf16(static_cast<float>(value))) : value;
  }

  std::uint64_t fingerprint(const Model<T>& model) const {
    Fingerprint print;
    for (std::size_t p = 0; p < model.size(); ++p) {
      for (const T value : model[p]) {
        if (kind_of(case_, p) == Kind::Double) {
          const auto wide = static_cast<double>(value);
          print.add(std::as_bytes(std::span(&wide, 1)));
        } else if (kind_of(case_, p) == Kind::Float) {
          const auto narrow = static_cast<float>(value);
          print.add(std::as_bytes(std::span(&narrow, 1)));
        } else {
          const std::uint16_t bits = bf16_bits(static_cast<float>(value));
          print.add(std::as_bytes(std::span(&bits, 1)));
        }
      }
    }
    return print.value();
  }

  Case case_;
  std::size_t workers_;
  Model<T> start_;
  std::vector<Model<T>> models_;
  std::vector<Model<T>> numerators_;  // of SGP
  std::vector<double> push_weights_;
  std::vector<std::vector<Rule<T>>> rules_;
  std::vector<double> norms_;
  std::unique_ptr<topology::Schedule> schedule_;
};

}  // namespace

std::vector<std::uint64_t> train_by_reference(const Case& c, std::size_t workers) {
  return c.wide ? Reference<double>(c, workers).run() : Reference<float>(c, workers).run();
}

// --- One worker, flat ----------------------------------------------------------------------------

struct ReferenceUpdates::State {
  Case config;
  std::vector<Rule<float>> rules;
};

ReferenceUpdates::ReferenceUpdates(const Case& c)
    : state_(std::make_unique<State>(State{c, rules_of<float>(c)})) {}
ReferenceUpdates::~ReferenceUpdates() = default;
ReferenceUpdates::ReferenceUpdates(ReferenceUpdates&&) noexcept = default;

std::size_t ReferenceUpdates::elements() {
  std::size_t all = 0;
  for (const Shape& shape : shapes()) {
    all += shape.elements();
  }
  return all;
}

void ReferenceUpdates::next(std::size_t worker, std::uint64_t step, std::span<const float> at,
                            std::span<float> model) {
  std::size_t begin = 0;
  for (std::size_t p = 0; p < shapes().size(); ++p) {
    const std::size_t size = shapes()[p].elements();
    const std::span<const float> here = at.subspan(begin, size);
    const auto gradient =
        gradient_of(state_->config, worker, step, p, Values<float>(here.begin(), here.end()));
    const std::span<float> part = model.subspan(begin, size);
    Values<float> x(part.begin(), part.end());
    if (gradient) {
      state_->rules[p].step(x, *gradient, 1, 1);
    }
    std::copy(x.begin(), x.end(), part.begin());
    begin += size;
  }
}

void ReferenceUpdates::gradient(std::size_t worker, std::uint64_t step, std::span<const float> at,
                                std::span<float> gradient) const {
  std::size_t begin = 0;
  for (std::size_t p = 0; p < shapes().size(); ++p) {
    const std::span<const float> here = at.subspan(begin, shapes()[p].elements());
    const auto values =
        gradient_of(state_->config, worker, step, p, Values<float>(here.begin(), here.end()));
    std::copy(values->begin(), values->end(), gradient.subspan(begin).begin());
    begin += here.size();
  }
}

void ReferenceUpdates::apply(std::span<const float> gradient, std::span<float> model) {
  std::size_t begin = 0;
  for (std::size_t p = 0; p < shapes().size(); ++p) {
    const std::size_t size = shapes()[p].elements();
    const std::span<float> part = model.subspan(begin, size);
    const std::span<const float> g = gradient.subspan(begin, size);
    Values<float> x(part.begin(), part.end());
    state_->rules[p].step(x, Values<float>(g.begin(), g.end()), 1, 1);
    std::copy(x.begin(), x.end(), part.begin());
    begin += size;
  }
}

float initial_of_flat(std::size_t element) {
  std::size_t p = 0;
  while (element >= shapes()[p].elements()) {
    element -= shapes()[p++].elements();
  }
  return static_cast<float>(initial(0, p, element));
}

std::uint64_t fingerprint_of_flat(std::span<const float> model) {
  Fingerprint print;
  print.add(std::as_bytes(model));
  return print.value();
}

}  // namespace starling::test
