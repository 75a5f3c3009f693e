#include "tests/comm/cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "starling/base/error.h"
#include "starling/base/running.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/comm/broadcast.h"
#include "starling/comm/gather.h"
#include "starling/comm/neighbour_exchange.h"
#include "starling/comm/push_sum.h"

namespace starling::test {
namespace {

using comm::AllReduce;
using comm::Engine;

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// At most k - 1 rounded additions, and the rounding of the inputs themselves.
template <typename T>
void check_near_double(Trial& trial, const std::vector<Rank>& members, const std::vector<T>& out) {
  const Trial::Exact& exact = trial.exact(members);
  const double k = static_cast<double>(members.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double bound = exact.magnitude[i] * k * std::numeric_limits<T>::epsilon();
    check(std::abs(out[i] - exact.sum[i]) <= bound, "element {} is {}, the sum is {}", i, out[i],
          exact.sum[i]);
  }
}

template <typename T>
Task<void> reduce(Engine& engine, Trial& trial, std::uint64_t id, std::vector<Rank> members,
                  AllReduce algorithm) {
  const std::vector<T> in = trial.input<T>(engine.rank());
  std::vector<T> out(in.size(), T{-1});
  const comm::ConstBuffer input = comm::input(std::span(in));
  const comm::Buffer output = comm::output(std::span(out));
  co_await comm::all_reduce(engine, {.id = trial.id(id), .members = members}, input, output,
                            algorithm);
  trial.record(engine.rank(), std::as_bytes(std::span(out)));
  check(same_bits(in, trial.input<T>(engine.rank())), "the input was changed");
  if (algorithm != AllReduce::Ring) {
    check(same_bits(out, trial.sum<T>(members)), "not the bits of the fixed tree");
  }
  check_near_double(trial, members, out);
}

// Contributions as bf16: the bits of the fixed tree over what they unpack to, whatever the
// algorithm.
template <typename T>
Task<void> reduce_rounded(Engine& engine, Trial& trial, std::uint64_t id, std::vector<Rank> members,
                          AllReduce algorithm) {
  const std::vector<T> in = trial.input<T>(engine.rank());
  std::vector<T> out(in.size(), T{-1});
  const comm::ConstBuffer input = comm::input(std::span(in));
  const comm::Buffer output = comm::output(std::span(out));
  co_await comm::all_reduce(engine, {.id = trial.id(id), .members = members}, input, output,
                            algorithm, comm::Precision::Bf16);
  trial.record(engine.rank(), std::as_bytes(std::span(out)));
  check(same_bits(in, trial.input<T>(engine.rank())), "the input was changed");
  check(same_bits(out, trial.rounded_sum<T>(members)), "not the bits of the fixed tree in bf16");
}

// In memory that the members share: their buffers lie there, or are staged, by worker and seed.
template <typename T>
Task<void> reduce_shared(Engine& engine, Trial& trial, std::uint64_t id, std::vector<Rank> members,
                         comm::Precision precision) {
  const std::vector<T>& given = trial.input<T>(engine.rank());
  const auto lies_there = [&](std::uint64_t turn) {
    return (trial.seed() / 2 + turn * engine.rank().value) % 3 == 0;
  };
  comm::Endpoint& endpoint = engine.endpoint();
  const std::size_t bytes = given.size() * sizeof(T);
  const comm::Blob in_pool = endpoint.share(bytes);
  const comm::Blob out_pool = endpoint.share(bytes);
  std::vector<T> in = given;
  std::vector<T> out(in.size(), T{-1});
  std::memcpy(in_pool.data, in.data(), bytes);
  const comm::ConstBuffer input{comm::kTypeOf<T>, lies_there(trial.seed() % 2)
                                                      ? comm::ConstBlob(in_pool)
                                                      : comm::input(std::span<const T>(in)).blob};
  const comm::Buffer output{comm::kTypeOf<T>, lies_there(trial.seed() % 5 == 0 ? 1 : 0)
                                                  ? out_pool
                                                  : comm::output(std::span(out)).blob};
  std::exception_ptr error;
  try {
    co_await comm::all_reduce(engine, {.id = trial.id(id), .members = members}, input, output,
                              AllReduce::Shared, precision);
  } catch (...) {
    error = std::current_exception();
  }
  if (output.blob.data == out_pool.data) {
    std::memcpy(out.data(), out_pool.data, bytes);
  }
  const bool kept = std::memcmp(input.blob.data, given.data(), bytes) == 0;
  // Nobody may see them any more, whatever has happened: the virtual network insists on it.
  endpoint.unshare(in_pool);
  endpoint.unshare(out_pool);
  if (error) {
    std::rethrow_exception(error);
  }
  check(kept, "the input was changed");
  check(same_bits(out, precision == comm::Precision::Full ? trial.sum<T>(members)
                                                          : trial.rounded_sum<T>(members)),
        "not the bits of the fixed tree");
  trial.record(engine.rank(), std::as_bytes(std::span(out)));
}

template <comm::Precision kPrecision>
Task<void> shared_case(Engine& engine, Trial& trial) {
  if (trial.seed() % 2 == 0) {
    co_await reduce_shared<float>(engine, trial, 1, trial.everyone(), kPrecision);
  } else {
    co_await reduce_shared<double>(engine, trial, 1, trial.group_of(engine.rank()), kPrecision);
  }
}

template <AllReduce kAlgorithm>
Task<void> rounded_case(Engine& engine, Trial& trial) {
  if (trial.seed() % 2 == 0) {
    co_await reduce_rounded<float>(engine, trial, 1, trial.everyone(), kAlgorithm);
  } else {
    co_await reduce_rounded<double>(engine, trial, 1, trial.everyone(), kAlgorithm);
  }
}

// Among at most eight, for everyone sends to everyone.
Task<void> gathering_case(Engine& engine, Trial& trial) {
  std::vector<Rank> members = trial.everyone();
  if (members.size() > 13) {
    std::erase_if(members, [&](Rank r) { return r.value / 8 != engine.rank().value / 8; });
  }
  if (trial.seed() % 3 == 0) {
    co_await reduce<float>(engine, trial, 1, members, AllReduce::Gather);
  } else if (trial.seed() % 3 == 1) {
    co_await reduce_rounded<float>(engine, trial, 1, members, AllReduce::Gather);
  } else {
    co_await reduce_rounded<double>(engine, trial, 1, members, AllReduce::Gather);
  }
}

// In groups, by the algorithms that run on a rounded copy as well.
Task<void> rounded_group_case(Engine& engine, Trial& trial) {
  constexpr AllReduce kEach[] = {AllReduce::Auto, AllReduce::Doubling, AllReduce::Direct,
                                 AllReduce::Halving, AllReduce::Gather};
  const std::vector<Rank> members = trial.group_of(engine.rank());
  co_await reduce_rounded<float>(engine, trial, 1, members, kEach[trial.seed() % 5]);
}

template <AllReduce kAlgorithm>
Task<void> all_reduce_case(Engine& engine, Trial& trial) {
  if (trial.seed() % 2 == 0) {
    co_await reduce<float>(engine, trial, 1, trial.everyone(), kAlgorithm);
  } else {
    co_await reduce<double>(engine, trial, 1, trial.everyone(), kAlgorithm);
  }
}

Task<void> group_case(Engine& engine, Trial& trial) {
  const auto algorithm = static_cast<AllReduce>(trial.seed() % 4);
  co_await reduce<float>(engine, trial, 1, trial.group_of(engine.rank()), algorithm);
}

// Records of odd lengths, in groups or among everyone; long ones are bulk data.
Task<void> gather_one(Engine& engine, Trial& trial, std::uint64_t id, std::vector<Rank> members) {
  const std::size_t size = 1 + trial.elements() % 700;
  std::vector<std::byte> records(size * members.size(), std::byte{0xEE});
  std::vector<std::byte> expected;
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (std::size_t i = 0; i < size; ++i) {
      expected.push_back(static_cast<std::byte>(members[m].index() * 31 + i * 7 + id));
    }
    if (members[m] == engine.rank()) {
      std::copy_n(expected.end() - static_cast<std::ptrdiff_t>(size), size,
                  records.begin() + static_cast<std::ptrdiff_t>(m * size));
    }
  }
  co_await comm::gather(engine, {.id = trial.id(id), .members = members}, records);
  trial.record(engine.rank(), records);
  check(records == expected, "not the records of the members");
}

Task<void> gather_case(Engine& engine, Trial& trial) {
  if (trial.seed() % 2 == 0) {
    co_await gather_one(engine, trial, 1, trial.everyone());
  } else {
    co_await gather_one(engine, trial, 1, trial.group_of(engine.rank()));
  }
}

Task<void> barrier_case(Engine& engine, Trial& trial) {
  const std::vector<Rank> members = trial.everyone();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    co_await comm::barrier(engine, {.id = trial.id(id), .members = members});
  }
}

Task<void> broadcast(Engine& engine, Trial& trial, std::uint64_t id) {
  const std::vector<Rank> members = trial.everyone();
  const std::vector<float> in = trial.input<float>(engine.rank());
  std::vector<float> out(in.size(), -1);
  const comm::ConstBuffer input = comm::input(std::span(in));
  const comm::Buffer output = comm::output(std::span(out));
  co_await comm::broadcast(engine, {.id = trial.id(id), .members = members}, trial.root(), input,
                           output);
  trial.record(engine.rank(), std::as_bytes(std::span(out)));
  check(same_bits(out, trial.input<float>(trial.root())), "not what the root sent");
  check(same_bits(in, trial.input<float>(engine.rank())), "the input was changed");
}

Task<void> broadcast_case(Engine& engine, Trial& trial) {
  // Several in a row: a root may run ahead only as far as flow control lets it.
  for (std::uint64_t id = 1; id <= 5; ++id) {
    co_await broadcast(engine, trial, id);
  }
}

// The terms of this worker's row in rank order, itself among them, by the fixed tree.
std::vector<float> mixed(Trial& trial, Rank self, const topology::Neighbours& row) {
  std::vector<float> result(trial.elements());
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::vector<float> terms;
    bool own = false;
    const auto add_own = [&] {
      terms.push_back(static_cast<float>(row.self_weight) * trial.input<float>(self)[i]);
      own = true;
    };
    for (const topology::Edge& e : row.in) {
      if (!own && e.peer > self) {
        add_own();
      }
      terms.push_back(static_cast<float>(e.weight) * trial.input<float>(e.peer)[i]);
    }
    if (!own) {
      add_own();
    }
    result[i] = tree_sum<float>(terms);
  }
  return result;
}

Task<void> neighbours(Engine& engine, Trial& trial, std::uint64_t id) {
  const topology::Neighbours row = trial.row_of(engine.rank());
  const std::vector<float> in = trial.input<float>(engine.rank());
  std::vector<float> out(in.size(), -1);
  const comm::ConstBuffer input = comm::input(std::span(in));
  const comm::Buffer output = comm::output(std::span(out));
  co_await comm::neighbour_exchange(engine, trial.id(id), row, input, output);
  trial.record(engine.rank(), std::as_bytes(std::span(out)));
  check(same_bits(out, mixed(trial, engine.rank(), row)), "not the bits of the fixed tree");
  check(same_bits(in, trial.input<float>(engine.rank())), "the input was changed");
}

Task<void> neighbour_case(Engine& engine, Trial& trial) { co_await neighbours(engine, trial, 1); }

Task<void> push_case(Engine& engine, Trial& trial) {
  const Rank self = engine.rank();
  const topology::Neighbours row = trial.shares_of(self);
  const std::vector<float> in = trial.input<float>(self);
  std::vector<float> out(in.size(), -1);
  const comm::ConstBuffer input = comm::input(std::span(in));
  const comm::Buffer output = comm::output(std::span(out));
  const comm::Pushed pushed =
      co_await comm::push_sum(engine, trial.id(1), row, trial.push_weight(self), input, output);
  trial.record(self, std::as_bytes(std::span(out)));
  double weight = row.self_weight * trial.push_weight(self);
  for (const topology::Edge& e : row.in) {
    weight += e.weight * trial.push_weight(e.peer);
  }
  check(pushed.weight == weight, "the push weight is {}, it should be {}", pushed.weight, weight);
  check(same_bits(out, mixed(trial, self, row)), "not the bits of the fixed tree");
}

// Six operations of all kinds started at once and awaited in another order.
Task<void> many_case(Engine& engine, Trial& trial) {
  std::vector<Running<void>> all;
  all.emplace_back(reduce<float>(engine, trial, 1, trial.everyone(), AllReduce::Direct));
  all.emplace_back(broadcast(engine, trial, 2));
  all.emplace_back(
      reduce<double>(engine, trial, 3, trial.group_of(engine.rank()), AllReduce::Doubling));
  all.emplace_back(neighbours(engine, trial, 4));
  all.emplace_back(reduce<float>(engine, trial, 5, trial.everyone(), AllReduce::Halving));
  all.emplace_back(reduce<float>(engine, trial, 6, trial.everyone(), AllReduce::Ring));
  std::exception_ptr error;
  for (std::size_t i = all.size(); i-- > 0;) {
    try {
      co_await all[i];
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

constexpr std::array<Case, 18> kCases = {{
    {"barrier", barrier_case},
    {"gather", gather_case},
    {"broadcast", broadcast_case},
    {"all_reduce_auto", all_reduce_case<AllReduce::Auto>},
    {"all_reduce_doubling", all_reduce_case<AllReduce::Doubling>},
    {"all_reduce_direct", all_reduce_case<AllReduce::Direct>},
    {"all_reduce_halving", all_reduce_case<AllReduce::Halving>},
    {"all_reduce_ring", all_reduce_case<AllReduce::Ring>},
    {"all_reduce_gather", gathering_case},
    {"all_reduce_groups", group_case},
    {"rounded_auto", rounded_case<AllReduce::Auto>},
    {"rounded_direct", rounded_case<AllReduce::Direct>},
    {"rounded_groups", rounded_group_case},
    {"neighbour_exchange", neighbour_case},
    {"push_sum", push_case},
    {"many_at_once", many_case},
    {"all_reduce_shared", shared_case<comm::Precision::Full>, true},
    {"rounded_shared", shared_case<comm::Precision::Bf16>, true},
}};

}  // namespace

std::span<const Case> cases() { return kCases; }

}  // namespace starling::test
