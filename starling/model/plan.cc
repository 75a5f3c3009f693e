#include "starling/model/plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "starling/base/error.h"
#include "starling/model/cards.h"
#include "starling/model/plan_why.h"
#include "starling/model/profile_costs.h"
#include "starling/model/rows.h"
#include "starling/model/what_if_costs.h"

namespace starling::model {
namespace {

constexpr std::size_t kMostBuckets = 16;

std::uint32_t workers_of(const Profile& profile, const Question& question) {
  return question.workers.value_or(profile.workers);
}
std::uint32_t per_node_of(const Profile& profile, const Question& question) {
  return question.per_node.value_or(std::min(profile.per_node, workers_of(profile, question)));
}

// Where buckets end, among the pieces: as the trainer cuts, each is closed as soon as it holds
// `bucket_bytes`.
struct Buckets {
  std::vector<std::size_t> bytes;
  std::vector<double> shares;  // of the backward pass
};
Buckets cut(const Profile& profile, std::size_t bucket_bytes) {
  const double all = std::accumulate(profile.shares.begin(), profile.shares.end(), 0.0);
  Buckets buckets;
  std::size_t begin = 0;
  double share = 0;
  for (std::size_t i = 0; i < profile.ends.size(); ++i) {
    share += profile.shares[i] / all;
    if (profile.ends[i] - begin >= bucket_bytes || i + 1 == profile.ends.size()) {
      buckets.bytes.push_back(profile.ends[i] - begin);
      buckets.shares.push_back(share);
      begin = profile.ends[i];
      share = 0;
    }
  }
  return buckets;
}

std::unique_ptr<ExchangeCosts> costs_of(const Profile& profile, const Question& question,
                                        const Pattern& pattern,
                                        const std::vector<std::size_t>& buckets) {
  if (!question.by_links && !question.is_what_if(profile)) {
    return std::make_unique<ProfileCosts>(profile, pattern, buckets);
  }
  Links links = links_of(profile);
  links.latency = question.latency.value_or(links.latency);
  links.bandwidth = question.bandwidth.value_or(links.bandwidth);
  links.per_node = per_node_of(profile, question);
  if (question.by_links) {
    return std::make_unique<LinkCosts>(link_costs(links, buckets));
  }
  return std::make_unique<WhatIfCosts>(profile, pattern, workers_of(profile, question), links,
                                       buckets);
}

// Mean and variation of what steps compute.
void sum_up(const Profile& profile, Plan& plan) {
  std::vector<double> times;
  for (const auto& worker : profile.compute) {
    for (const ComputeTime& step : worker) {
      times.push_back(seconds(step.forward + step.backward));
      plan.compute += times.back();
    }
  }
  plan.compute /= static_cast<double>(times.size());
  double squares = 0;
  for (const double time : times) {
    squares += (time - plan.compute) * (time - plan.compute);
  }
  plan.variation =
      plan.compute == 0 ? 0 : std::sqrt(squares / static_cast<double>(times.size())) / plan.compute;
}

// With the buckets that are asked for, or the fastest.
Choice best_of(const Profile& profile, const Question& question, const Candidate& candidate) {
  std::vector<std::size_t> sizes;
  if (!exchanges_in_buckets(*candidate.algorithm)) {
    sizes = {profile.bytes};
  } else if (question.bucket_bytes) {
    sizes = {*question.bucket_bytes};
  } else {
    for (std::size_t n = 1; n <= kMostBuckets; n *= 2) {
      sizes.push_back(std::max<std::size_t>(1, (profile.bytes + n - 1) / n));
    }
  }
  std::optional<Choice> best;
  for (const std::size_t size : sizes) {
    Choice choice = predict_choice(profile, question, candidate, size);
    if (!best || choice.prediction.step < best->prediction.step) {
      best = std::move(choice);
    }
  }
  return *best;
}

// Of the advisable ones the first that is as fast as the fastest; all-reduce unless that pays.
// Requires: choices in the order of candidates.
const Choice& recommended(const std::vector<Choice>& choices) {
  const double base = choices.front().prediction.step;
  double fastest = base;
  for (const Choice& choice : choices) {
    fastest = choice.candidate.advisable ? std::min(fastest, choice.prediction.step) : fastest;
  }
  if (base <= fastest * (1 + kWorthwhile)) {
    return choices.front();
  }
  return *std::find_if(choices.begin(), choices.end(), [&](const Choice& choice) {
    return choice.candidate.advisable && choice.prediction.step <= fastest * (1 + kTie);
  });
}

}  // namespace

bool Question::is_what_if(const Profile& profile) const {
  return workers.value_or(profile.workers) != profile.workers ||
         per_node.value_or(profile.per_node) != profile.per_node ||
         bandwidth.value_or(profile.network.bandwidth) != profile.network.bandwidth ||
         latency.value_or(profile.network.latency) != profile.network.latency;
}

bool exchanges_in_buckets(const topology::Algorithm& row) {
  const Family family = family_of({.algorithm = &row});
  return family == Family::AllReduce || family == Family::Behind;
}

Choice predict_choice(const Profile& profile, const Question& question, const Candidate& candidate,
                      std::size_t bucket_bytes, const std::function<void(Setting&)>& change) {
  const topology::Algorithm& row = *candidate.algorithm;
  const std::uint32_t workers = workers_of(profile, question);
  const std::uint32_t per_node = per_node_of(profile, question);
  const auto schedule = topology::make_schedule(candidate.pattern.schedule,
                                                {.workers = workers,
                                                 .per_node = per_node,
                                                 .group_size = candidate.pattern.group_size,
                                                 .peers = candidate.pattern.peers,
                                                 .seed = question.seed});
  const Buckets buckets = cut(profile, exchanges_in_buckets(row) ? bucket_bytes : profile.bytes);
  const auto costs = costs_of(profile, question, candidate.pattern, buckets.bytes);
  Setting setting;
  setting.algorithm = &row;
  setting.schedule = schedule.get();
  setting.workers = workers;
  setting.times = times_of(ComputeTimes(profile.compute, question.seed));
  setting.costs = costs.get();
  setting.buckets = buckets.bytes.size();
  setting.shares = buckets.shares;
  const double update = update_seconds(profile, row);
  for (const std::size_t bytes : buckets.bytes) {
    setting.updates.push_back(update * static_cast<double>(bytes) /
                              static_cast<double>(profile.bytes));
  }
  setting.sync_period = candidate.sync_period;
  setting.steps = question.steps;
  setting.seed = question.seed;
  if (change) {
    change(setting);
  }
  Choice choice;
  choice.candidate = candidate;
  choice.bucket_bytes = bucket_bytes;
  choice.buckets = buckets.bytes.size();
  choice.prediction = predict(setting);
  choice.bytes_per_node = static_cast<double>(profile.bytes) * models_per_card(setting, per_node);
  return choice;
}

Plan make_plan(const Profile& profile, const Question& question) {
  Plan plan;
  plan.workers = workers_of(profile, question);
  plan.per_node = per_node_of(profile, question);
  require(plan.workers >= 2, "one worker: there is nothing to decide, it trains alone");
  require(plan.per_node >= 1 && plan.per_node <= plan.workers,
          "{} workers per node: there are {} workers", plan.per_node, plan.workers);
  sum_up(profile, plan);
  for (const Candidate& candidate : candidates(plan.workers, plan.per_node)) {
    plan.choices.push_back(best_of(profile, question, candidate));
    plan.choices.back().speed_up =
        plan.choices.front().prediction.step / plan.choices.back().prediction.step;
  }
  const std::string taken = title(recommended(plan.choices).candidate);
  const std::string all_reduce = title(plan.choices.front().candidate);
  std::sort(plan.choices.begin(), plan.choices.end(),
            [](const Choice& a, const Choice& b) { return a.prediction.step < b.prediction.step; });
  const auto place = [&](const std::string& name) {
    return static_cast<std::size_t>(
        std::find_if(plan.choices.begin(), plan.choices.end(),
                     [&](const Choice& c) { return title(c.candidate) == name; }) -
        plan.choices.begin());
  };
  plan.recommended = place(taken);
  plan.all_reduce = place(all_reduce);
  plan.why = why(plan);
  return plan;
}

}  // namespace starling::model
