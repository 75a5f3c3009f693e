#include "starling/model/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "starling/base/error.h"
#include "starling/model/link_costs.h"
#include "starling/model/profile_costs.h"
#include "starling/model/rows.h"
#include "starling/topology/traffic.h"

namespace starling::model {
namespace {

// Less is not worth another algorithm than all-reduce; or another one than the next.
constexpr double kWorthwhile = 0.03;
constexpr double kTie = 0.01;
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

// Through a node's card, each way, per step.
double bytes_per_node(const Profile& profile, const Candidate& candidate,
                      const topology::Schedule& schedule, std::uint32_t workers,
                      std::uint32_t per_node) {
  constexpr std::int64_t kMostSteps = 64;
  const auto everybody = topology::View::full(workers);
  const auto mean = [&](const topology::Schedule& of) {
    const std::int64_t period = std::min(kMostSteps, of.period(everybody).value_or(8));
    return topology::traffic(of, everybody, period, per_node, Bytes{profile.bytes}).node_mean;
  };
  const double step = mean(schedule);
  if (!candidate.sync_period) {
    return step;
  }
  const double sync = mean(*topology::make_schedule("complete", {.workers = workers}));
  const bool only_syncs = candidate.algorithm->cadence == topology::Cadence::EveryPeriod;
  const double between = only_syncs ? 0 : step;
  return between + (sync - between) / *candidate.sync_period;
}

std::unique_ptr<ExchangeCosts> costs_of(const Profile& profile, const Question& question,
                                        const Pattern& pattern,
                                        const std::vector<std::size_t>& buckets) {
  if (!question.is_what_if()) {
    return std::make_unique<ProfileCosts>(profile, pattern, buckets);
  }
  Links links;
  links.latency = question.latency.value_or(profile.network.latency);
  links.bandwidth = question.bandwidth.value_or(profile.network.bandwidth);
  links.local_latency = profile.local.latency;
  links.local_bandwidth = profile.local.bandwidth;
  links.per_node = per_node_of(profile, question);
  std::vector<Bytes> sizes;
  for (const std::size_t bytes : buckets) {
    sizes.push_back(Bytes{bytes});
  }
  return std::make_unique<LinkCosts>(links, sizes, Volume::Nodes);
}

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

std::string describe(const Choice& choice) {
  const Prediction& p = choice.prediction;
  return fmt::format("{} of its step waits for late workers, {} for exchanges",
                     percent(p.waiting.straggler / p.step), percent(p.waiting.exchange / p.step));
}

std::vector<std::string> words(const Plan& plan) {
  const Choice& base = plan.choices[plan.all_reduce];
  const Choice& best = plan.choices[plan.recommended];
  std::vector<std::string> why;
  why.push_back(fmt::format("all-reduce: {}", describe(base)));
  if (plan.recommended == plan.all_reduce) {
    const Choice& fastest = plan.choices.front();
    why.push_back(plan.all_reduce == 0
                      ? "nothing is predicted to be faster, and no model is more exact"
                      : fmt::format("{} would be {:.1f} % faster at best: not worth models that "
                                    "differ from each other",
                                    title(fastest.candidate), 100 * (fastest.speed_up - 1)));
    return why;
  }
  why.push_back(fmt::format("{}: {}", title(best.candidate), describe(best)));
  if (best.candidate.algorithm->one_step_behind) {
    why.push_back(fmt::format("{} of its exchanges are hidden behind the next step",
                              percent(best.prediction.overlap)));
  }
  if (best.candidate.algorithm->trigger != topology::Trigger::AllArrived) {
    why.push_back(
        fmt::format("its rounds do not wait for late workers: {} of what they average is "
                    "older than the round",
                    percent(best.prediction.stale)));
  }
  if (plan.per_node > 1 && best.bytes_per_node < base.bytes_per_node) {
    why.push_back(fmt::format("a node's card carries {} per step, {} for all-reduce",
                              bytes_text(best.bytes_per_node), bytes_text(base.bytes_per_node)));
  }
  return why;
}

}  // namespace

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
  choice.bytes_per_node = bytes_per_node(profile, candidate, *schedule, workers, per_node);
  return choice;
}

Plan make_plan(const Profile& profile, const Question& question) {
  Plan plan;
  plan.workers = workers_of(profile, question);
  plan.per_node = per_node_of(profile, question);
  require(plan.workers >= 2, "one worker: there is nothing to decide, it trains alone");
  require(plan.per_node >= 1 && plan.per_node <= plan.workers,
          "{} workers per node: there are {} workers", plan.per_node, plan.workers);
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

  for (const Candidate& candidate : candidates(plan.workers, plan.per_node)) {
    std::optional<Choice> best;
    std::vector<std::size_t> sizes;
    if (question.bucket_bytes) {
      sizes = {*question.bucket_bytes};
    }
    for (std::size_t n = 1; sizes.size() < 5 && n <= kMostBuckets && !question.bucket_bytes;
         n *= 2) {
      sizes.push_back(std::max<std::size_t>(1, (profile.bytes + n - 1) / n));
    }
    for (const std::size_t size :
         exchanges_in_buckets(*candidate.algorithm) ? sizes : std::vector{profile.bytes}) {
      Choice choice = predict_choice(profile, question, candidate, size);
      if (!best || choice.prediction.step < best->prediction.step) {
        best = std::move(choice);
      }
    }
    plan.choices.push_back(*best);
  }
  // Of the advisable ones the first that is as fast as the fastest; all-reduce unless that pays.
  const double base = plan.choices.front().prediction.step;
  double fastest = base;
  for (Choice& choice : plan.choices) {
    choice.speed_up = base / choice.prediction.step;
    fastest = choice.candidate.advisable ? std::min(fastest, choice.prediction.step) : fastest;
  }
  const Choice* recommended = &plan.choices.front();
  if (base > fastest * (1 + kWorthwhile)) {
    recommended = &*std::find_if(plan.choices.begin(), plan.choices.end(), [&](const Choice& c) {
      return c.candidate.advisable && c.prediction.step <= fastest * (1 + kTie);
    });
  }
  const std::string taken = title(recommended->candidate);
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
  plan.why = words(plan);
  return plan;
}

}  // namespace starling::model
