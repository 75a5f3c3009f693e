#include "starling/workload/prediction.h"

#include <algorithm>
#include <memory>

#include "starling/base/error.h"
#include "starling/base/time_words.h"
#include "starling/model/plan.h"
#include "starling/model/rows.h"
#include "starling/topology/schedule.h"

namespace starling::workload {
namespace {

constexpr std::size_t kQuantiles = 20;
constexpr std::int64_t kMostPhases = 16;

enum Field : std::size_t { AtForward, AtSync, AtQuantiles, AtPhases = AtQuantiles + kQuantiles };

template <typename T>
double quantile(std::vector<T> values, double share) {
  if (values.empty()) {
    return 0;
  }
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

model::Candidate candidate_of(const Predicted& what) {
  model::Candidate candidate;
  candidate.algorithm = what.rounds.algorithm;
  candidate.sync_period = what.rounds.steps.sync_period;
  model::Pattern& pattern = candidate.pattern;
  pattern.schedule = what.rounds.schedule_name;
  if (what.options.group_size) {
    pattern.group_size = static_cast<std::uint32_t>(*what.options.group_size);
  } else if (pattern.schedule == "groups") {
    pattern.group_size = topology::default_group_size(what.workers);
  }
  pattern.peers = static_cast<std::uint32_t>(what.options.peers);
  pattern.push = candidate.algorithm->payload == topology::Payload::ParametersAndPushWeight;
  return candidate;
}

topology::Trigger trigger_of(comm::TriggerOptions::When when) {
  using When = comm::TriggerOptions::When;
  switch (when) {
    case When::All:
      return topology::Trigger::AllArrived;
    case When::First:
      return topology::Trigger::FirstArrived;
    case When::OneSide:
      return topology::Trigger::OneSideArrived;
    case When::Initiator:
    case When::Quorum:
      return topology::Trigger::DrawnInitiator;
    case When::Need:
      return topology::Trigger::WhenNeeded;
  }
  check(false, "a trigger of no kind");
  return {};
}

// What was asked for in place of what the row says.
void change(model::Setting& setting, const comm::StepOptions& steps) {
  setting.overlap = steps.overlap;
  if (steps.order) {
    setting.order =
        *steps.order == comm::Order::UpdateThenAverage ? model::Order::After : model::Order::Beside;
  }
  const comm::TriggerOptions trigger = steps.trigger.value();
  setting.trigger = trigger_of(trigger.when);
  if (trigger.when == comm::TriggerOptions::When::Quorum) {
    setting.quorum = trigger.quorum;
  }
  setting.grace = trigger.learn_grace ? 0 : seconds(trigger.grace);
  setting.age_bound = trigger.age_bound;
}

// A group is as fast as it was for the last to come; the others have waited.
std::vector<double> without_waiting(const topology::Schedule& schedule, Step step,
                                    const std::vector<double>& by_rank) {
  const auto everybody = topology::View::full(static_cast<std::uint32_t>(by_rank.size()));
  std::vector<double> least = by_rank;
  for (std::uint32_t r = 0; r < by_rank.size(); ++r) {
    const topology::Row row = schedule.row(step, Rank{r}, everybody);
    if (const auto* group = std::get_if<topology::Group>(&row)) {
      for (const Rank member : group->members) {
        least[r] = std::min(least[r], by_rank[member.index()]);
      }
    }
  }
  return least;
}

std::optional<double> predict(const Predicted& what, const model::Profile& profile) {
  const auto as_asked = [&](model::Setting& setting) { change(setting, what.rounds.steps); };
  model::Setting asked;
  asked.algorithm = what.rounds.algorithm;
  as_asked(asked);
  if (!model::is_modelled(asked)) {
    return std::nullopt;
  }
  model::Question question;
  question.steps = 500;
  question.seed = static_cast<std::uint64_t>(what.options.seed);
  const auto bucket = static_cast<std::size_t>(what.options.bucket_bytes);
  return model::predict_choice(profile, question, candidate_of(what), bucket, as_asked)
      .prediction.step;
}

}  // namespace

void OwnTimes::add(double seconds, double forward) {
  seconds_.push_back(static_cast<float>(seconds));
  forward_ += forward;
}

std::vector<double> OwnTimes::record(std::span<const comm::Exchanged> exchanges,
                                     std::int64_t phases) const {
  std::vector<double> record(AtPhases + static_cast<std::size_t>(phases));
  double all = 0;
  for (const float time : seconds_) {
    all += time;
  }
  record[AtForward] = all > 0 && forward_ > 0 ? forward_ / all : ComputeTimes::kForward;
  for (std::size_t i = 0; i < kQuantiles; ++i) {
    record[AtQuantiles + i] = quantile(seconds_, (static_cast<double>(i) + 0.5) / kQuantiles);
  }
  std::vector<double> syncs;
  std::vector<std::vector<double>> by_phase(static_cast<std::size_t>(phases));
  for (const auto& exchange : exchanges) {
    auto& list =
        exchange.is_sync ? syncs : by_phase[exchange.version % static_cast<std::uint64_t>(phases)];
    list.push_back(seconds(exchange.time));
  }
  constexpr double kShare = 0.25;
  record[AtSync] = quantile(syncs, kShare);
  for (std::size_t p = 0; p < by_phase.size(); ++p) {
    record[AtPhases + p] = quantile(by_phase[p], kShare);
  }
  return record;
}

std::int64_t phases_of(const Predicted& what) {
  const auto everybody = topology::View::full(what.workers);
  return std::min(kMostPhases, what.rounds.schedule->period(everybody).value_or(1));
}

std::optional<double> predict_from_parts(const Predicted& what, const Meetings::Records& records) {
  const auto record = [&](std::size_t rank) -> const std::vector<double>& {
    const auto first = std::find_if(records.begin(), records.end(),
                                    [](const auto& one) { return one.has_value(); });
    return records[rank] ? *records[rank] : **first;
  };
  const model::Pattern pattern = candidate_of(what).pattern;
  const std::size_t bytes = what.bucket_ends.back();
  model::Profile profile;
  profile.workers = what.workers;
  profile.per_node = what.per_node;
  profile.bytes = bytes;
  profile.ends = what.bucket_ends;
  // How long each bucket's part of the backward pass took is not recorded.
  for (std::size_t i = 0; i < profile.ends.size(); ++i) {
    const std::size_t from = i == 0 ? 0 : profile.ends[i - 1];
    profile.shares.push_back(static_cast<double>(profile.ends[i] - from) /
                             static_cast<double>(bytes));
  }
  std::vector<double> syncs;
  for (std::size_t r = 0; r < what.workers; ++r) {
    const double forward = record(r)[AtForward];
    auto& steps = profile.compute.emplace_back();
    for (std::size_t i = 0; i < kQuantiles; ++i) {
      const double time = record(r)[AtQuantiles + i];
      steps.push_back({duration(forward * time), duration((1 - forward) * time)});
    }
    syncs.push_back(record(r)[AtSync]);
  }
  const auto add = [&](const model::Pattern& of, std::int64_t phase, std::vector<double> seconds) {
    profile.exchanges.push_back(
        {.pattern = of, .phase = phase, .samples = {{bytes, std::move(seconds)}}});
  };
  const double sync = *std::min_element(syncs.begin(), syncs.end());
  const std::int64_t phases = phases_of(what);
  for (std::int64_t p = 0; p < phases; ++p) {
    std::vector<double> seconds;
    for (std::size_t r = 0; r < what.workers; ++r) {
      // Rows whose rounds are all syncs have no others.
      const double time = record(r)[AtPhases + static_cast<std::size_t>(p)];
      seconds.push_back(time > 0 ? time : syncs[r]);
    }
    add(pattern, p, without_waiting(*what.rounds.schedule, Step{p}, seconds));
  }
  if (pattern.schedule != "complete") {
    add({.schedule = "complete"}, 0, std::vector<double>(what.workers, sync));
  }
  return predict(what, profile);
}

std::optional<double> predict_from_profile(const Predicted& what) {
  const model::Profile profile = model::read_profile(what.options.profile);
  require(profile.workers == what.workers && profile.per_node == what.per_node,
          "--profile {}: it was measured with {} workers, {} per node; here are {}, {} per node",
          what.options.profile, profile.workers, profile.per_node, what.workers, what.per_node);
  require(profile.bytes == what.bucket_ends.back(),
          "--profile {}: it is of a model of {} bytes, not {}", what.options.profile, profile.bytes,
          what.bucket_ends.back());
  const model::Pattern pattern = candidate_of(what).pattern;
  const bool measured = std::any_of(
      profile.exchanges.begin(), profile.exchanges.end(),
      [&](const model::ExchangePhase& exchange) { return exchange.pattern == pattern; });
  return measured ? predict(what, profile) : std::nullopt;
}

void require_profile_of(const ImagesOptions& options, std::size_t workers) {
  if (!options.profile.empty()) {
    const model::Profile profile = model::read_profile(options.profile);
    require(profile.workers == workers, "--profile {}: it was measured with {} workers, not {}",
            options.profile, profile.workers, workers);
  }
}

}  // namespace starling::workload
