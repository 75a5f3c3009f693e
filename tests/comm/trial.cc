#include "tests/comm/trial.h"

#include <algorithm>
#include <cmath>

namespace starling::test {
namespace {

// Lengths around every border: one element, the largest mail, cuts of 64 bytes, several chunks.
constexpr std::size_t kLengths[] = {1,   2,    3,    15,   16,   17,   64,
                                    333, 1013, 1014, 1015, 2048, 4099, 9001};

template <typename T>
std::vector<T> values(const Random& random, std::size_t n) {
  std::vector<T> result(n);
  for (std::size_t i = 0; i < n; ++i) {
    result[i] = static_cast<T>(random.normal(i));
  }
  return result;
}

template <typename T>
std::vector<const T*> inputs_of(Trial& trial, const std::vector<Rank>& members) {
  std::vector<const T*> inputs;
  for (Rank r : members) {
    inputs.push_back(trial.input<T>(r).data());
  }
  return inputs;
}

// The nearest number of 8 significant bits, ties to even. Requires: an exponent that bf16 has.
template <typename T>
T to_bf16(T x) {
  int exponent = 0;
  const T fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

template <typename T>
T as_it_is(T x) {
  return x;
}

template <typename T>
std::vector<T> sum_of(Trial& trial, const std::vector<Rank>& members, T (*seen)(T) = as_it_is<T>) {
  const std::vector<const T*> inputs = inputs_of<T>(trial, members);
  std::vector<T> result(trial.elements());
  std::vector<T> terms(members.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (std::size_t m = 0; m < members.size(); ++m) {
      terms[m] = seen(inputs[m][i]);
    }
    result[i] = tree_sum<T>(terms);
  }
  return result;
}

}  // namespace

template <typename T>
T tree_sum(std::span<const T> terms) {
  if (terms.size() == 1) {
    return terms[0];
  }
  std::size_t left = 1;
  while (left * 2 < terms.size()) {
    left *= 2;
  }
  return tree_sum<T>(terms.first(left)) + tree_sum<T>(terms.subspan(left));
}
template float tree_sum(std::span<const float>);
template double tree_sum(std::span<const double>);

Trial::Trial(std::uint64_t seed, std::size_t workers, std::size_t most_elements,
             std::uint64_t first_id)
    : seed_(seed), first_id_(first_id), workers_(workers), random_(Random(seed).stream(workers)) {
  const std::size_t fits = static_cast<std::size_t>(
      std::upper_bound(std::begin(kLengths), std::end(kLengths), most_elements) -
      std::begin(kLengths));
  elements_ = kLengths[random_.below(fits, 0)];
  root_ = Rank{static_cast<std::uint32_t>(random_.below(workers, 1))};
}

void Trial::record(Rank rank, std::span<const std::byte> result) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const std::byte b : result) {
    hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001B3u;
  }
  digests_[rank.value] += hash;  // operations may end in any order
}

std::uint64_t Trial::digest(Rank rank) const {
  const auto known = digests_.find(rank.value);
  return known == digests_.end() ? 0 : known->second;
}

template <>
const std::vector<float>& Trial::input(Rank rank) {
  auto [place, first] = floats_.try_emplace(rank.value);
  if (first) {
    place->second = values<float>(random_.stream(100 + rank.value), elements_);
  }
  return place->second;
}

template <>
const std::vector<double>& Trial::input(Rank rank) {
  auto [place, first] = doubles_.try_emplace(rank.value);
  if (first) {
    place->second = values<double>(random_.stream(100 + rank.value), elements_);
  }
  return place->second;
}

template <>
const std::vector<float>& Trial::sum(const std::vector<Rank>& members) {
  auto [place, first] = float_sums_.try_emplace(members);
  if (first) {
    place->second = sum_of<float>(*this, members);
  }
  return place->second;
}

template <>
const std::vector<double>& Trial::sum(const std::vector<Rank>& members) {
  auto [place, first] = double_sums_.try_emplace(members);
  if (first) {
    place->second = sum_of<double>(*this, members);
  }
  return place->second;
}

template <>
const std::vector<float>& Trial::rounded_sum(const std::vector<Rank>& members) {
  auto [place, first] = rounded_float_sums_.try_emplace(members);
  if (first) {
    place->second = sum_of<float>(*this, members, to_bf16<float>);
  }
  return place->second;
}

template <>
const std::vector<double>& Trial::rounded_sum(const std::vector<Rank>& members) {
  auto [place, first] = rounded_double_sums_.try_emplace(members);
  if (first) {
    place->second = sum_of<double>(*this, members, to_bf16<double>);
  }
  return place->second;
}

const Trial::Exact& Trial::exact(const std::vector<Rank>& members) {
  auto [place, first] = exact_.try_emplace(members);
  if (first) {
    Exact& exact = place->second;
    exact.sum.assign(elements_, 0);
    exact.magnitude.assign(elements_, 0);
    // Float inputs are double inputs rounded, so their bound covers both.
    for (const double* input : inputs_of<double>(*this, members)) {
      for (std::size_t i = 0; i < elements_; ++i) {
        exact.sum[i] += input[i];
        exact.magnitude[i] += std::abs(input[i]);
      }
    }
  }
  return place->second;
}

std::vector<Rank> Trial::everyone() const {
  std::vector<Rank> all(workers_);
  for (std::uint32_t r = 0; r < workers_; ++r) {
    all[r] = Rank{r};
  }
  return all;
}

std::vector<Rank> Trial::group_of(Rank rank) const {
  const std::uint64_t groups = 1 + random_.below(workers_, 2);
  const auto group = [&](Rank r) { return random_.stream(3).below(groups, r.value); };
  std::vector<Rank> members;
  for (Rank r : everyone()) {
    if (group(r) == group(rank)) {
      members.push_back(r);
    }
  }
  return members;
}

bool Trial::edge(Rank from, Rank to) const {
  const double density = std::min(1.0, 3.0 / static_cast<double>(workers_));
  return from != to &&
         random_.stream(4).uniform(from.value * std::uint64_t{workers_} + to.value) < density;
}

double Trial::weight(Rank from, Rank to) const {
  return random_.stream(5).normal(from.value * std::uint64_t{workers_} + to.value);
}

std::size_t Trial::out_degree(Rank from) const {
  std::size_t degree = 0;
  for (Rank to : everyone()) {
    degree += edge(from, to) ? 1 : 0;
  }
  return degree;
}

topology::Neighbours Trial::row_of(Rank rank) const {
  topology::Neighbours row{.self_weight = weight(rank, rank), .in = {}, .out = {}};
  for (Rank other : everyone()) {
    if (edge(other, rank)) {
      row.in.push_back({other, weight(other, rank)});
    }
    if (edge(rank, other)) {
      row.out.push_back({other, weight(rank, other)});
    }
  }
  return row;
}

topology::Neighbours Trial::shares_of(Rank rank) const {
  topology::Neighbours row = row_of(rank);
  row.self_weight = 1.0 / static_cast<double>(row.out.size() + 1);
  for (topology::Edge& out : row.out) {
    out.weight = row.self_weight;
  }
  for (topology::Edge& in : row.in) {
    in.weight = 1.0 / static_cast<double>(out_degree(in.peer) + 1);
  }
  return row;
}

}  // namespace starling::test
