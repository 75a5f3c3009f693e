#include "starling/comm/ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace starling::comm {
namespace {

template <typename T>
std::string list_of(const std::vector<T>& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

}  // namespace

LedgerTotals& LedgerTotals::operator+=(const LedgerTotals& other) {
  rounds += other.rounds;
  syncs += other.syncs;
  voids += other.voids;
  stale += other.stale;
  for (const auto& [age, count] : other.ages) {
    ages[age] += count;
  }
  pick_ups += other.pick_ups;
  late += other.late;
  waited += other.waited;
  bytes += other.bytes;
  return *this;
}

Ledger::Ledger(Rank worker, bool held, Sink sink)
    : worker_(worker), held_(held), sink_(std::move(sink)) {
  if (sink_) {
    ring_.resize(kRing);
  }
}

void Ledger::note(const Outcome& outcome) {
  if (outcome.is_void) {
    ++totals_.voids;
  } else {
    ++totals_.rounds;
    totals_.bytes += outcome.bytes;
    const Exchanged exchanged{outcome.version, outcome.is_sync, outcome.exchanging};
    if (exchanged_.size() < kRing) {
      exchanged_.push_back(exchanged);
    } else {
      exchanged_[totals_.rounds % kRing] = exchanged;
    }
    const std::int64_t age = static_cast<std::int64_t>(outcome.version) - outcome.own.value;
    ++totals_.ages[held_ ? std::max<std::int64_t>(age, 0) : age];
    if (outcome.is_sync) {
      ++totals_.syncs;
    } else if (age > 0) {
      ++totals_.stale;
    }
  }
  keep(outcome);
}

void Ledger::note(const PickUp& pick_up) {
  ++totals_.pick_ups;
  totals_.late += pick_up.late ? 1 : 0;
  totals_.waited += pick_up.waited;
  keep(pick_up);
}

template <typename Row>
void Ledger::keep(const Row& row) {
  if (!sink_) {
    return;
  }
  ring_[filled_++] = row;
  if (filled_ == kRing) {
    flush();
  }
}

void Ledger::flush() {
  if (!sink_) {
    return;
  }
  std::string lines;
  for (std::size_t i = 0; i < filled_; ++i) {
    lines += std::visit([&](const auto& row) { return to_json_line(worker_, row); }, ring_[i]);
  }
  filled_ = 0;
  sink_(lines);
}

std::string to_json_line(Rank worker, const Outcome& o) {
  std::vector<std::uint32_t> members;
  for (const Rank r : o.members) {
    members.push_back(r.value);
  }
  std::vector<std::int64_t> steps;
  for (const Step s : o.steps) {
    steps.push_back(s.value);
  }
  const bool passive = !o.is_void && o.own.value < static_cast<std::int64_t>(o.version);
  return fmt::format(
      R"({{"kind":"round","worker":{},"version":{},"epoch":{},"void":{},"sync":{},"form":"{}",)"
      R"("members":{},"steps":{},"own":{},"own_at_end":{},"passive":{},"activator":{},)"
      R"("push_weight":{},"self_weight":{},"activated":{},"started":{},"finished":{},"bytes":{}}})"
      "\n",
      worker, o.version, o.epoch, o.is_void, o.is_sync, o.form == Form::Sum ? "sum" : "mix",
      list_of(members), list_of(steps), o.own.value, o.own_at_end.value, passive, o.activator,
      o.push_weight, o.self_weight, o.activated.time_since_epoch().count(),
      o.started.time_since_epoch().count(), o.finished.time_since_epoch().count(), o.bytes);
}

std::string to_json_line(Rank worker, const PickUp& p) {
  return fmt::format(
      R"({{"kind":"pick-up","worker":{},"step":{},"version":{},"divisor":{},"late":{},"waited":{}}})"
      "\n",
      worker, p.step.value, p.version ? fmt::format("{}", *p.version) : "null", p.divisor, p.late,
      p.waited.count());
}

}  // namespace starling::comm
