#include "starling/model/rounds_of_steps.h"

#include <numeric>
#include <utility>

#include "starling/base/error.h"

namespace starling::model {
namespace {

// Rounds that are kept, times workers.
constexpr std::int64_t kMostKept = 1 << 22;

void append(std::vector<Rank>& ranks, const std::vector<topology::Edge>& edges) {
  for (const topology::Edge& edge : edges) {
    ranks.push_back(edge.peer);
  }
}

}  // namespace

RoundsOfSteps::RoundsOfSteps(const Setting& setting)
    : setting_(setting),
      view_(topology::View::full(setting.workers)),
      period_(setting.schedule->period(view_)) {
  if (period_ && *period_ * static_cast<std::int64_t>(setting.workers) <= kMostKept) {
    phases_.resize(static_cast<std::size_t>(*period_));
    known_.resize(phases_.size());
  }
  everybody_.members_.emplace_back(view_.live().begin(), view_.live().end());
  everybody_.givers_.push_back(setting.workers);
  finish(everybody_, 0);
  if (period_ && setting.sync_period) {
    period_ = std::lcm(*period_, std::int64_t{*setting.sync_period});
  }
}

const Round& RoundsOfSteps::at(std::int64_t version) {
  if (is_sync(version)) {
    return everybody_;
  }
  if (phases_.empty()) {
    last_ = lay_out(version);
    return last_;
  }
  const std::size_t phase = static_cast<std::size_t>(version) % phases_.size();
  if (!known_[phase]) {
    phases_[phase] = lay_out(version);
    known_[phase] = true;
  }
  return phases_[phase];
}

Round RoundsOfSteps::lay_out(std::int64_t version) {
  Round round;
  std::vector<bool> placed(setting_.workers);
  for (const Rank worker : view_.live()) {
    if (placed[worker.index()]) {
      continue;
    }
    const topology::Row row = setting_.schedule->row(Step{version}, worker, view_);
    if (const auto* group = std::get_if<topology::Group>(&row)) {
      round.members_.emplace_back(group->members.begin(), group->members.end());
      round.givers_.push_back(group->members.size());
      round.exchanges_.emplace_back();
      for (const Rank member : group->members) {
        placed[member.index()] = true;
      }
    } else {
      const auto& neighbours = std::get<topology::Neighbours>(row);
      round.members_.push_back({worker});
      append(round.members_.back(), neighbours.in);
      round.givers_.push_back(round.members_.back().size());
      if (setting_.push_waits) {
        append(round.members_.back(), neighbours.out);
      }
      round.exchanges_.push_back({.closed = false});
      placed[worker.index()] = true;
    }
  }
  finish(round, version);
  return round;
}

// From members and kinds of exchanges: spans, engines, costs.
void RoundsOfSteps::finish(Round& round, std::int64_t version) {
  round.exchanges_.resize(round.members_.size());
  std::vector<Exchange> active;
  for (std::size_t i = 0; i < round.members_.size(); ++i) {
    PlannedExchange& exchange = round.exchanges_[i];
    exchange.needs = round.members_[i];
    exchange.takers = exchange.closed ? exchange.needs : exchange.needs.first(1);
    exchange.engine = engines_.try_emplace(round.members_[i], engines_.size()).first->second;
    active.push_back(
        {.members = exchange.needs.first(round.givers_[i]), .closed = exchange.closed});
  }
  const std::size_t count = active.size();
  round.seconds_.resize(setting_.buckets * count);
  round.sums_.assign(count, 0);
  for (std::size_t k = 0; k < setting_.buckets; ++k) {
    const std::span<double> out(round.seconds_.data() + k * count, count);
    setting_.costs->seconds(k, Step{version}, active, out);
    for (std::size_t i = 0; i < count; ++i) {
      require(out[i] >= 0, "the exchange of bucket {} takes {} seconds", k, out[i]);
      round.sums_[i] += out[i];
    }
  }
}

}  // namespace starling::model
