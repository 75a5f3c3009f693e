#include "starling/workload/exchange_times.h"

#include <algorithm>
#include <variant>

#include "starling/base/interval.h"
#include "starling/comm/all_reduce.h"
#include "starling/comm/barrier.h"
#include "starling/comm/neighbour_exchange.h"
#include "starling/comm/push_sum.h"

namespace starling::workload {
namespace {

// Several in a row, as buckets are: the first finds idle links, which take more at once than busy
// ones, and also pays for the barrier's last messages.
constexpr std::size_t kMostInARow = 4;
constexpr double kLongest = 0.5;  // seconds, of all in a row
constexpr std::size_t kMostRepetitions = 24;
// What the application does beside: an update reads or writes each parameter some six times, as
// three copies do.
constexpr std::size_t kCopies = 3;

struct Repetition {
  std::span<const Rank> everyone;
  const topology::Row* row = nullptr;
  bool push = false;
  // Each exchange has its own part of them, as buckets have: none is in a cache that a bucket's is
  // not.
  comm::Blob in;
  comm::Blob out;
  std::size_t bytes = 0;
  std::size_t count = 1;
  std::uint64_t first_id = 0;
};

Task<double> run(comm::Engine& engine, Repetition repetition) {
  co_await comm::barrier(engine, {.id = repetition.first_id, .members = repetition.everyone});
  const Time begin = engine.now();
  for (std::size_t i = 1; i <= repetition.count; ++i) {
    const std::uint64_t id = repetition.first_id + i;
    const std::size_t at = i % (repetition.in.size / repetition.bytes) * repetition.bytes;
    const comm::ConstBuffer in = {comm::Type::Float32,
                                  repetition.in.slice(at, at + repetition.bytes)};
    const comm::Buffer out = {comm::Type::Float32, repetition.out.slice(at, at + repetition.bytes)};
    if (const auto* group = std::get_if<topology::Group>(repetition.row)) {
      const std::vector<Rank> members(group->members.begin(), group->members.end());
      co_await comm::all_reduce(engine, {.id = id, .members = members}, in, out);
    } else {
      const auto& neighbours = std::get<topology::Neighbours>(*repetition.row);
      if (repetition.push) {
        co_await comm::push_sum(engine, id, neighbours, 1, in, out);
      } else {
        co_await comm::neighbour_exchange(engine, id, neighbours, in, out);
      }
    }
  }
  co_return seconds(engine.now() - begin) / static_cast<double>(repetition.count);
}

}  // namespace

ExchangeTimes::ExchangeTimes(comm::Workers& workers, Meetings& meetings, std::size_t most)
    : workers_(workers),
      meetings_(meetings),
      everyone_(workers.everyone()),
      in_(workers.memory(most)),
      out_(workers.memory(most)),
      model_(most),
      copy_(most) {
  std::fill_n(in_.blob().data, in_.blob().size, std::byte{0});
  std::fill_n(out_.blob().data, out_.blob().size, std::byte{0});
}

double ExchangeTimes::run_once(const model::Pattern& pattern, const topology::Row& row,
                               std::size_t bytes, std::size_t count) {
  Repetition repetition;
  repetition.everyone = everyone_;
  repetition.row = &row;
  repetition.push = pattern.push;
  repetition.in = in_.blob();
  repetition.out = out_.blob();
  repetition.bytes = bytes;
  repetition.count = count;
  repetition.first_id = id_ + 1;
  id_ += count + 1;
  auto result = workers_.start([&](comm::Engine& engine) { return run(engine, repetition); });
  for (std::size_t i = 0; i < kCopies * count; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i % (model_.size() / bytes) * bytes);
    std::copy_n(model_.begin() + at, bytes, copy_.begin() + at);
  }
  return result.get();
}

std::vector<double> ExchangeTimes::repeat(const model::Pattern& pattern, const topology::Row& row,
                                          std::size_t bytes, Effort effort) {
  const std::vector<double> first = meetings_.everyones(run_once(pattern, row, bytes, 1));
  const double each = std::max(1e-6, *std::max_element(first.begin(), first.end()));
  const std::size_t in_a_row =
      std::clamp<std::size_t>(static_cast<std::size_t>(kLongest / each), 1, kMostInARow);
  const std::size_t repetitions =
      std::clamp<std::size_t>(static_cast<std::size_t>(effort.budget.count() / each) / in_a_row,
                              effort.fewest, kMostRepetitions);
  std::vector<double> own;
  for (std::size_t i = 0; i < repetitions; ++i) {
    own.push_back(run_once(pattern, row, bytes, in_a_row));
  }
  return meetings_.everyones(mean_of(own));
}

std::vector<double> ExchangeTimes::measure(const model::Pattern& pattern,
                                           const topology::Schedule& schedule, Step phase,
                                           std::size_t bytes, Effort effort) {
  const topology::View everybody =
      topology::View::full(static_cast<std::uint32_t>(workers_.size()));
  return repeat(pattern, schedule.row(phase, workers_.rank(), everybody), bytes, effort);
}

model::Link ExchangeTimes::link(Rank a, Rank b) {
  const bool takes_part = workers_.rank() == a || workers_.rank() == b;
  topology::Row row =
      topology::uniform_group(takes_part ? topology::Ranks{std::min(a, b), std::max(a, b)}
                                         : topology::Ranks{workers_.rank()});
  const auto time = [&](std::size_t bytes) {
    return repeat({.schedule = "pairs"}, row, bytes, Effort())[a.index()];
  };
  const std::size_t large = in_.blob().size;
  const std::size_t small = std::min<std::size_t>(large, 1024);
  const double latency = time(small);
  const double whole = large == small ? latency : time(large);
  // A pair that averages sends each way once what it has.
  const double flow = std::max(whole - latency, 1e-9);
  return {.latency = latency, .bandwidth = static_cast<double>(large) / flow};
}

}  // namespace starling::workload
