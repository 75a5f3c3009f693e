#include "starling/sim/training_record.h"

#include <algorithm>
#include <utility>

#include "starling/comm/neighbourhood.h"

namespace starling::sim {
namespace {

using comm::Version;

// Of the interval by batch means: enough to tell how sure a mean is, long enough to be independent.
constexpr std::uint64_t kBatches = 20;

}  // namespace

TrainingRecord::TrainingRecord(const TrainingOptions& options, const comm::StepOptions& steps)
    : steps_(steps),
      rounds_(comm::rounds_of(steps)),
      view_(topology::View::full(static_cast<std::uint32_t>(options.network.ports.workers))),
      trace_workers_(options.trace_workers),
      trace_steps_(static_cast<std::int64_t>(options.trace_steps)),
      parts_(rounds_.parts.size()),
      workers_(options.network.ports.workers),
      step_ends_(steps.steps) {}

bool TrainingRecord::is_sync(Version v) const {
  return rounds_.sync_period && (v + 1) % *rounds_.sync_period == 0;
}

bool TrainingRecord::in_person(Version v) const {
  return rounds_.trigger.when == comm::TriggerOptions::When::All || is_sync(v);
}

TrainingRecord::Arrivals* TrainingRecord::arrivals(Version v) {
  if (v < first_arrivals_) {
    return nullptr;
  }
  while (v >= first_arrivals_ + arrivals_.size()) {
    Arrivals& made = arrivals_.emplace_back();
    if (in_person(first_arrivals_ + arrivals_.size() - 1)) {
      made.times.resize(workers_.size() * parts_);
      made.last.resize(parts_);
    }
  }
  return &arrivals_[v - first_arrivals_];
}

void TrainingRecord::did(Slice::What what, Rank r, Step step, Time begin, Time end,
                         std::optional<std::size_t> part) {
  const double time = seconds(end - begin);
  switch (what) {
    case Slice::What::Delay:
      sums_.delay += time;
      break;
    case Slice::What::Forward:
    case Slice::What::Backward:
      sums_.compute += time;
      break;
    case Slice::What::Update:
      sums_.update += time;
      break;
    case Slice::What::WaitForStraggler:
      sums_.straggler += time;
      break;
    case Slice::What::WaitForExchange:
      sums_.exchange += time;
      break;
    case Slice::What::Exchange:
      break;
  }
  if (r.value < trace_workers_ && step.value < trace_steps_ && end > begin) {
    slices_.push_back({.what = what,
                       .worker = r,
                       .number = step.value,
                       .part = part,
                       .begin = begin,
                       .end = end});
  }
}

void TrainingRecord::handed_over(Rank r, Version v, Time now, std::size_t part) {
  Arrivals* known = arrivals(v);
  if (known == nullptr || known->times.empty()) {
    return;
  }
  known->times[r.index() * parts_ + part] = now;
  known->last[part] = std::max(known->last[part], now);
}

// Of those who exchange with `r`, itself included.
Time TrainingRecord::last_arrival(Rank r, Version v, std::size_t part) {
  const Arrivals* known = arrivals(v);
  if (known == nullptr || known->times.empty()) {
    return {};
  }
  if (is_sync(v)) {
    return known->last[part];
  }
  const topology::Row row = steps_.schedule->row(Step{static_cast<std::int64_t>(v)}, r, view_);
  Time last{};
  const auto look = [&](Rank member) {
    last = std::max(last, known->times[member.index() * parts_ + part]);
  };
  if (const auto* group = std::get_if<topology::Group>(&row)) {
    if (group->members.size() == workers_.size()) {
      return known->last[part];
    }
    for (const Rank member : group->members) {
      look(member);
    }
  } else {
    for (const Rank member : comm::members_of(r, std::get<topology::Neighbours>(row))) {
      look(member);
    }
  }
  return last;
}

void TrainingRecord::waited(Rank r, Step step, Version v, Time begin, Time end, std::size_t part) {
  if (end <= begin) {
    return;
  }
  const Worker& worker = workers_[r.index()];
  Time there = begin;
  if (in_person(v)) {
    there = last_arrival(r, v, part);
  } else if (worker.activated_version == v) {
    there = worker.activated;
  }
  there = std::clamp(there, begin, end);
  did(Slice::What::WaitForStraggler, r, step, begin, there);
  did(Slice::What::WaitForExchange, r, step, there, end);
}

void TrainingRecord::ended(Rank r, Step step, Time now) {
  workers_[r.index()].ended = now;
  Time& last = step_ends_[static_cast<std::size_t>(step.value)];
  last = std::max(last, now);
  ++steps_ended_;
  const auto next = static_cast<std::uint64_t>(step.value) + 1;
  if (next % comm::period_of(steps_) != 0) {
    return;
  }
  if (Arrivals* known = arrivals(next / comm::period_of(steps_) - 1)) {
    ++known->past;
  }
  while (!arrivals_.empty() && arrivals_.front().past == workers_.size()) {
    arrivals_.pop_front();
    ++first_arrivals_;
  }
}

void TrainingRecord::exchanged(Rank r, std::size_t part, Time begin, Time end) {
  if (r.value < trace_workers_) {
    workers_[r.index()].exchanges.push_back(
        {.what = Slice::What::Exchange, .worker = r, .part = part, .begin = begin, .end = end});
  }
}

void TrainingRecord::observed(Rank r, const comm::Outcome& outcome) {
  Worker& worker = workers_[r.index()];
  std::vector<Slice> exchanges = std::move(worker.exchanges);
  worker.exchanges.clear();
  if (outcome.is_void) {
    return;
  }
  worker.activated_version = outcome.version;
  worker.activated = outcome.activated;
  // Held models may be ahead of a version, and are then as new as it asks.
  const std::int64_t age = static_cast<std::int64_t>(outcome.version) - outcome.own.value;
  ++contributions_;
  syncs_ += outcome.is_sync ? 1 : 0;
  stale_ += !outcome.is_sync && age > 0 ? 1 : 0;
  if (outcome.own == comm::kNothing) {
    ++nothing_;
  } else {
    ++ages_[std::max<std::int64_t>(age, 0)];
  }
  const auto version = static_cast<std::int64_t>(outcome.version);
  if (version * static_cast<std::int64_t>(comm::period_of(steps_)) >= trace_steps_) {
    return;
  }
  for (Slice& exchange : exchanges) {
    exchange.number = version;
    exchange.members = outcome.members.size();
    slices_.push_back(exchange);
  }
}

double TrainingRecord::done() const {
  return static_cast<double>(steps_ended_) / static_cast<double>(workers_.size()) /
         static_cast<double>(step_ends_.size());
}

std::vector<double> TrainingRecord::batches() const {
  const std::uint64_t count = step_ends_.size();
  const std::uint64_t period =
      std::max<std::uint64_t>(steps_.sync_period.value_or(1), comm::period_of(steps_));
  const std::uint64_t least = (count + kBatches - 1) / kBatches;
  std::uint64_t length = (least + period - 1) / period * period;
  if (count / length < 2) {
    length = least;
  }
  std::vector<double> means;
  Time begin{};
  for (std::uint64_t end = length; end <= count; end += length) {
    means.push_back(seconds(step_ends_[end - 1] - begin) / static_cast<double>(length));
    begin = step_ends_[end - 1];
  }
  return means;
}

void TrainingRecord::fill(TrainingResult& result) const {
  const auto steps = static_cast<double>(step_ends_.size());
  Duration own{0};
  for (const Worker& worker : workers_) {
    own += worker.ended.time_since_epoch();
    result.seconds = std::max(result.seconds, seconds(worker.ended.time_since_epoch()));
  }
  const double all = steps * static_cast<double>(workers_.size());
  result.step_seconds = result.seconds / steps;
  result.own_step_seconds = seconds(own) / all;
  result.batches = batches();
  result.shares = {.compute = sums_.compute / all,
                   .delay = sums_.delay / all,
                   .straggler = sums_.straggler / all,
                   .exchange = sums_.exchange / all,
                   .update = sums_.update / all};
  result.rounds = contributions_;
  result.syncs = syncs_;
  result.ages = ages_;
  result.nothing = nothing_;
  const std::uint64_t free = contributions_ - syncs_;
  result.stale_fraction = free == 0 ? 0 : static_cast<double>(stale_) / static_cast<double>(free);
  result.slices = slices_;
}

}  // namespace starling::sim
