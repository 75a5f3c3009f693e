#include "starling/kernels/update.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/random.h"
#include "starling/kernels/wire.h"
#include "tests/kernels/every_target.h"
#include "tests/kernels/reference.h"

namespace starling::kernels {
namespace {

enum class Kind { None, Sgd, Adam };

// What differs from one pass to the next.
template <typename T>
struct Plan {
  Kind kind = Kind::None;
  SgdStep<T> sgd = {};
  AdamStep<T> adam = {};
  bool in_place = true;
  bool copies = true;
  bool copies_in_place = false;
  bool mixes = true;
  bool rounded = false;
  bool has_gradient = true;
  T scale = 1;
};

template <typename T>
std::vector<T> normal(std::size_t size, std::uint64_t seed) {
  const Random random(seed);
  std::vector<T> result(size);
  for (std::size_t i = 0; i < size; ++i) {
    result[i] = std::ldexp(static_cast<T>(random.normal(i)), static_cast<int>(i % 23) - 12);
  }
  return result;
}

// All the memory that a pass touches, each stream at an odd place of its own.
template <typename T>
struct Memory {
  explicit Memory(std::size_t n)
      : size(n),
        from(fill(n, 1)),
        result(fill(n, 2)),
        gradient(fill(n, 3)),
        into(n, 2),
        copy(n, 3),
        first(fill(n, 4)),
        second(fill(n, 5)),
        accumulated(fill(n, 6)) {
    for (T& v : second.span()) {
      v *= v;
    }
  }

  static Guarded<T> fill(std::size_t n, std::uint64_t seed) {
    Guarded<T> memory(n, (n + seed) % 5);
    const std::vector<T> numbers = normal<T>(n, seed);
    std::copy(numbers.begin(), numbers.end(), memory.span().begin());
    return memory;
  }

  Streams<T> streams(const Plan<T>& plan) {
    T* const model = from.span().data();
    return {.size = size,
            .from = model,
            .into = plan.in_place ? model : into.span().data(),
            .copy = !plan.copies           ? nullptr
                    : plan.copies_in_place ? model
                                           : copy.span().data(),
            .result = plan.mixes ? result.span().data() : nullptr,
            .of_from = plan.mixes ? T{0.375} : T{1},
            .of_result = plan.mixes ? T{1} / 3 : T{0},
            .rounded = plan.rounded,
            .gradient = plan.has_gradient ? gradient.span().data() : nullptr,
            .gradient_scale = plan.scale};
  }

  bool run(const Plan<T>& plan) {
    switch (plan.kind) {
      case Kind::None:
        return update_none(streams(plan));
      case Kind::Sgd:
        return update_sgd(streams(plan), plan.sgd,
                          plan.sgd.momentum == 0 ? nullptr : first.span().data());
      case Kind::Adam:
        return update_adam(streams(plan), plan.adam, first.span().data(), second.span().data(),
                           plan.adam.window > 1 ? accumulated.span().data() : nullptr);
    }
    return false;
  }

  std::size_t size;
  Guarded<T> from, result, gradient, into, copy, first, second, accumulated;
};

// The contract, element by element.
template <typename T>
class Reference {
 public:
  explicit Reference(const Plan<T>& plan) : plan_(plan) {}

  T x(const Streams<T>& s, std::size_t i) const {
    const T from = s.from[i];
    if (s.result == nullptr) {
      return from;
    }
    const T part = s.of_result * s.result[i];
    if (!s.rounded) {
      return s.of_from * from + part;
    }
    Bf16 narrow;
    T back = 0;
    pack(std::span(&narrow, 1), std::span(&from, 1));
    unpack(std::span(&back, 1), std::span<const Bf16>(&narrow, 1));
    return (from + part) - (1 - s.of_from) * back;
  }

  void run(Memory<T>& memory) const {
    const Streams<T> s = memory.streams(plan_);
    for (std::size_t i = 0; i < s.size; ++i) {
      const T mixed = x(s, i);
      const T moved = s.gradient == nullptr      ? mixed
                      : plan_.kind == Kind::Sgd  ? sgd(memory, mixed, i)
                      : plan_.kind == Kind::Adam ? adam(memory, mixed, i)
                                                 : mixed;
      s.into[i] = moved;
      if (s.copy != nullptr) {
        s.copy[i] = moved;
      }
    }
  }

 private:
  T sgd(Memory<T>& memory, T mixed, std::size_t i) const {
    const SgdStep<T>& step = plan_.sgd;
    T& b = memory.first.span()[i];
    T g = plan_.scale * memory.gradient.span()[i];
    g = g + step.decay * mixed;
    if (step.momentum == 0) {
      return mixed - step.lr * g;
    }
    b = step.first ? g : step.momentum * b + (1 - step.dampening) * g;
    return mixed - step.lr * (step.nesterov ? g + step.momentum * b : b);
  }

  T adam(Memory<T>& memory, T mixed, std::size_t i) const {
    const AdamStep<T>& step = plan_.adam;
    T& m = memory.first.span()[i];
    T& v = memory.second.span()[i];
    T& a = memory.accumulated.span()[i];
    T g = plan_.scale * memory.gradient.span()[i];
    g = g + step.decay * mixed;
    const T root = std::sqrt(step.correction2);
    const T new_m = step.beta1 * m + step.rest1 * g;
    const T new_v = step.beta2 * v + step.rest2 * (g * g);
    const T update =
        (step.lr * root / step.correction1) * new_m / (std::sqrt(new_v) + step.epsilon * root);
    if (step.window <= 1) {
      m = new_m;
      v = new_v;
    } else {
      a = a + g * (1 / static_cast<T>(step.window));
      if (step.ends_window) {
        m = step.beta1 * m + step.rest1 * a;
        v = step.beta2 * v + step.rest2 * (a * a);
        a = 0;
      }
    }
    return step.shrink * mixed - update;
  }

  Plan<T> plan_;
};

template <typename T>
void expect_reference(const Plan<T>& plan, std::size_t size) {
  Memory<T> got(size);
  Memory<T> wanted(size);
  EXPECT_TRUE(got.run(plan));
  Reference<T>(plan).run(wanted);
  for (Guarded<T> Memory<T>::* stream :
       {&Memory<T>::from, &Memory<T>::result, &Memory<T>::gradient, &Memory<T>::into,
        &Memory<T>::copy, &Memory<T>::first, &Memory<T>::second, &Memory<T>::accumulated}) {
    const std::span<T> numbers = (wanted.*stream).span();
    expect_same_bits<T>((got.*stream).span(), std::vector<T>(numbers.begin(), numbers.end()));
    (got.*stream).expect_guards_untouched();
  }
}

template <typename T>
std::vector<Plan<T>> updates() {
  const SgdStep<T> sgd{.lr = T{0.1}};
  const SgdStep<T> heavy{.lr = T{0.1}, .momentum = T{0.9}, .dampening = T{0.3}, .decay = T{0.01}};
  SgdStep<T> first = heavy;
  first.first = true;
  const SgdStep<T> nesterov{.lr = T{0.1}, .momentum = T{0.9}, .nesterov = true};
  const AdamStep<T> adam{.lr = T{0.01},
                         .beta1 = T{0.9},
                         .rest1 = T{0.1},
                         .beta2 = T{0.999},
                         .rest2 = T{0.001},
                         .epsilon = T{1e-8},
                         .correction1 = T{0.271},
                         .correction2 = T{0.002997}};
  AdamStep<T> coupled = adam;
  coupled.decay = T{0.02};
  AdamStep<T> decoupled = adam;
  decoupled.shrink = T{0.9998};
  AdamStep<T> inside = decoupled;
  inside.window = 3;
  inside.ends_window = false;
  AdamStep<T> ends = coupled;
  ends.window = 3;
  std::vector<Plan<T>> result = {{}};
  for (const SgdStep<T>& step : {sgd, heavy, first, nesterov}) {
    result.push_back({.kind = Kind::Sgd, .sgd = step});
  }
  for (const AdamStep<T>& step : {adam, coupled, decoupled, inside, ends}) {
    result.push_back({.kind = Kind::Adam, .adam = step});
  }
  return result;
}

template <typename T>
void expect_every_update(std::size_t size) {
  for (const Plan<T>& update : updates<T>()) {
    SCOPED_TRACE(fmt::format("kind {}, window {}, {} elements", static_cast<int>(update.kind),
                             update.adam.window, size));
    Plan<T> plan = update;
    expect_reference(plan, size);
    plan.in_place = false;
    plan.scale = T{0.25} / 3;
    expect_reference(plan, size);
    plan.copies_in_place = true;
    plan.rounded = true;
    expect_reference(plan, size);
    plan.copies = false;
    plan.mixes = false;
    expect_reference(plan, size);
    plan.has_gradient = false;
    expect_reference(plan, size);
  }
}

class Updates : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Kernels, Updates, every_target(), target_name);

TEST_P(Updates, EveryShortLength) {
  for (std::size_t size = 0; size <= 70; ++size) {
    expect_every_update<float>(size);
    expect_every_update<double>(size);
  }
}

TEST_P(Updates, Long) {
  expect_every_update<float>(4099);
  expect_every_update<double>(1031);
}

// One pass is as good as many.
TEST_P(Updates, PiecesOfAnyLengthGiveTheSameBits) {
  const Plan<float> plan = updates<float>()[7];
  Memory<float> whole(1000);
  Memory<float> parts(1000);
  whole.run(plan);
  const Streams<float> all = parts.streams(plan);
  for (std::size_t begin = 0, size = 1; begin < 1000; begin += size, size = 2 * size + 1) {
    Streams<float> part = all;
    part.size = std::min(size, 1000 - begin);
    part.from += begin;
    part.into += begin;
    part.copy += begin;
    part.result += begin;
    part.gradient += begin;
    update_adam(part, plan.adam, parts.first.span().data() + begin,
                parts.second.span().data() + begin, nullptr);
  }
  const std::span<float> wanted = whole.from.span();
  expect_same_bits<float>(parts.from.span(), std::vector(wanted.begin(), wanted.end()));
}

// What was rounded on its way is taken back: alone, a worker stays where it is, up to one rounding
// of a sum.
TEST_P(Updates, TheRoundedMixOfOneIsItsModel) {
  Memory<float> memory(333);
  Plan<float> plan{.in_place = false, .rounded = true};
  std::vector<Bf16> wire(333);
  pack(std::span(wire), std::span<const float>(memory.from.span()));
  unpack(memory.result.span(), std::span<const Bf16>(wire));
  Streams<float> streams = memory.streams(plan);
  streams.of_from = 0;
  streams.of_result = 1;
  EXPECT_TRUE(update_none(streams));
  for (std::size_t i = 0; i < 333; ++i) {
    ASSERT_NEAR(memory.into.span()[i], memory.from.span()[i],
                1e-6 * std::abs(memory.from.span()[i]));
  }
}

template <typename T>
void expect_found(const Plan<T>& plan, Guarded<T> Memory<T>::* stream, std::size_t size) {
  for (const T bad : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN()}) {
    for (std::size_t place = 0; place < size; ++place) {
      Memory<T> memory(size);
      (memory.*stream).span()[place] = bad;
      ASSERT_FALSE(memory.run(plan)) << bad << " at " << place << " of " << size;
    }
  }
}

template <typename T>
void expect_every_stream_watched() {
  for (const Plan<T>& plan : updates<T>()) {
    SCOPED_TRACE(fmt::format("kind {}, window {}, ends {}", static_cast<int>(plan.kind),
                             plan.adam.window, plan.adam.ends_window));
    for (const std::size_t size : {1u, 37u}) {
      expect_found(plan, &Memory<T>::from, size);
      expect_found(plan, &Memory<T>::result, size);
      if (plan.kind != Kind::None) {
        expect_found(plan, &Memory<T>::gradient, size);
      }
      if (plan.kind == Kind::Adam || (plan.sgd.momentum != 0 && !plan.sgd.first)) {
        expect_found(plan, &Memory<T>::first, size);
      }
      if (plan.kind == Kind::Adam && plan.adam.window > 1) {
        expect_found(plan, &Memory<T>::accumulated, size);
      }
    }
  }
}

TEST_P(Updates, WhatIsNotFiniteIsFoundAnywhere) {
  expect_every_stream_watched<float>();
  expect_every_stream_watched<double>();
}

// The model would look well: an infinite second moment divides every update away, for ever.
TEST_P(Updates, AnOverflowOfTheSecondMomentIsFound) {
  for (std::size_t place = 0; place < 37; ++place) {
    Memory<float> memory(37);
    memory.gradient.span()[place] = 1e30f;
    ASSERT_FALSE(memory.run(updates<float>()[5])) << place;
    ASSERT_TRUE(std::isfinite(memory.from.span()[place]));
  }
}

TEST_P(Updates, WithoutAGradientOnlyTheMixIsWritten) {
  for (Plan<float> plan : updates<float>()) {
    Memory<float> memory(50);
    Memory<float> mixed(50);
    plan.has_gradient = false;
    memory.run(plan);
    mixed.run({});
    const std::span<float> wanted = mixed.from.span();
    expect_same_bits<float>(memory.from.span(), std::vector(wanted.begin(), wanted.end()));
    const std::vector<float> before = normal<float>(50, 4);
    expect_same_bits<float>(memory.first.span(), before);
  }
}

template <typename T>
double reference_squares(const std::vector<T>& values) {
  std::vector<double> sums(16, 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(values[i]);
    sums[i % 16] += x * x;
  }
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) {
      sums[j] += sums[j + half];
    }
  }
  return sums[0];
}

template <typename T>
void expect_squares(std::size_t size) {
  const std::vector<T> numbers = normal<T>(size, 7);
  Guarded<T> memory(size, size % 7);
  std::copy(numbers.begin(), numbers.end(), memory.span().begin());
  ASSERT_EQ(bits_of(sum_of_squares(memory.span().data(), size)),
            bits_of(reference_squares(numbers)))
      << size;
}

TEST_P(Updates, SumsOfSquaresHaveOneOrder) {
  for (std::size_t size = 0; size <= 70; ++size) {
    expect_squares<float>(size);
    expect_squares<double>(size);
  }
  expect_squares<float>(100'003);
  expect_squares<double>(100'003);
}

TEST_P(Updates, ASumOfSquaresShowsWhatIsNotFinite) {
  for (std::size_t place = 0; place < 50; ++place) {
    std::vector<float> values(50, 1e30f);  // whose squares only a double holds
    EXPECT_TRUE(std::isfinite(sum_of_squares(values.data(), 50)));
    values[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(std::isfinite(sum_of_squares(values.data(), 50)));
    values[place] = -std::numeric_limits<float>::infinity();
    EXPECT_FALSE(std::isfinite(sum_of_squares(values.data(), 50)));
  }
}

TEST(UpdateContract, StateNeedsMemory) {
  std::vector<float> x(4);
  const Streams<float> streams{.size = 4, .from = x.data(), .into = x.data(), .gradient = x.data()};
  EXPECT_THROW(update_sgd(streams, {.momentum = 0.9f}, nullptr), Error);
  EXPECT_THROW(update_adam(streams, {.window = 2}, x.data(), x.data(), nullptr), Error);
}

}  // namespace
}  // namespace starling::kernels
