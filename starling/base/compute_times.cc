#include "starling/base/compute_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "starling/base/draws.h"
#include "starling/base/error.h"
#include "starling/base/time_words.h"

namespace starling {
namespace {

constexpr std::string_view kWhat = "computation";

// Of the logarithm, if the coefficient of variation is `variation`.
double log_deviation(double variation) { return std::sqrt(std::log1p(variation * variation)); }

struct Moments {
  double mean;
  double deviation;
};

// MEAN,VARIANCE
Moments parse_moments(std::string_view text, std::string_view words) {
  const auto parts = split(words, ',');
  require(parts.size() == 2, "{} '{}': write MEAN,VARIANCE, in seconds and seconds²", kWhat, text);
  const double mean = parse_seconds(kWhat, text, parts[0]);
  const auto variance = parse_number<double>(parts[1]);
  require(variance && *variance >= 0 && *variance <= 1e6,
          "{} '{}': '{}' is not a variance; allowed are 0 to 1000000", kWhat, text, parts[1]);
  require(mean > 0, "{} '{}': the mean must be more than 0", kWhat, text);
  return {mean, std::sqrt(*variance)};
}

using Steps = std::vector<ComputeTime>;

// Of a mean, in standard errors: of 64 workers that are alike, one is beyond in 3 cases of 100.
constexpr double kChance = 3.5;

double whole(const ComputeTime& step) { return seconds(step.forward + step.backward); }

double mean_of(const Steps& steps) {
  double sum = 0;
  for (const ComputeTime& step : steps) {
    sum += whole(step);
  }
  return sum / static_cast<double>(steps.size());
}

Steps joined(const std::vector<Steps>& workers) {
  Steps all;
  for (const Steps& steps : workers) {
    all.insert(all.end(), steps.begin(), steps.end());
  }
  return all;
}

// Whether the means of workers lie as close to each other as those of equal ones would.
bool are_alike(const std::vector<Steps>& workers) {
  const bool have_means = std::all_of(workers.begin(), workers.end(),
                                      [](const Steps& steps) { return steps.size() > 1; });
  if (workers.size() < 2 || !have_means) {
    return false;
  }
  const Steps all = joined(workers);
  double squares = 0;
  for (const Steps& steps : workers) {
    const double mean = mean_of(steps);
    for (const ComputeTime& step : steps) {
      squares += (whole(step) - mean) * (whole(step) - mean);
    }
  }
  const double variance = squares / static_cast<double>(all.size() - workers.size());
  const double mean = mean_of(all);
  return std::all_of(workers.begin(), workers.end(), [&](const Steps& steps) {
    const double error = std::sqrt(variance / static_cast<double>(steps.size()));
    return std::abs(mean_of(steps) - mean) <= kChance * error;
  });
}

}  // namespace

ComputeTimes::ComputeTimes(std::string_view text, std::uint64_t seed, double forward)
    : seed_(seed), forward_(forward) {
  const auto words = starling::split(text, ':');
  if (ScaledTimes::names(text)) {
    kind_ = ScaledTimes::parse(kWhat, text);
    mean_ = parse_seconds(kWhat, text, words[2]);
    return;
  }
  if (words[0] == "constant" && words.size() == 2) {
    mean_ = parse_seconds(kWhat, text, words[1]);
    kind_ = Constant{mean_};
    return;
  }
  if ((words[0] == "normal" || words[0] == "lognormal") && words.size() == 2) {
    const Moments moments = parse_moments(text, words[1]);
    mean_ = moments.mean;
    if (words[0] == "normal") {
      kind_ = Normal{moments.mean, moments.deviation};
    } else {
      kind_ = LogNormal{moments.mean, log_deviation(moments.deviation / moments.mean)};
    }
    return;
  }
  require(words.size() == 2 || words.size() == 3,
          "{} '{}': write FORWARD:BACKWARD, FORWARD:BACKWARD:VARIATION, constant:SECONDS, "
          "normal:MEAN,VARIANCE, lognormal:MEAN,VARIANCE or draw:NAME:MEAN, such as "
          "0.010:0.020:0.3",
          kWhat, text);
  const double first = parse_seconds(kWhat, text, words[0]);
  mean_ = first + parse_seconds(kWhat, text, words[1]);
  forward_ = mean_ == 0 ? forward : first / mean_;
  if (words.size() == 2) {
    kind_ = Constant{mean_};
    return;
  }
  const auto variation = parse_number<double>(words[2]);
  require(variation && *variation >= 0 && *variation <= 10,
          "{} '{}': '{}' is not a coefficient of variation; allowed are 0 to 10", kWhat, text,
          words[2]);
  kind_ = LogNormal{mean_, log_deviation(*variation)};
}

ComputeTimes::ComputeTimes(std::vector<std::vector<ComputeTime>> by_worker, std::uint64_t seed)
    : kind_(are_alike(by_worker) ? Measured{joined(by_worker)} : std::move(by_worker)),
      seed_(seed) {
  const auto& workers = std::get<Measured>(kind_);
  require(!workers.empty(), "{}: no measured steps", kWhat);
  for (const std::vector<ComputeTime>& steps : workers) {
    require(!steps.empty(), "{}: no measured steps", kWhat);
    for (const ComputeTime& step : steps) {
      require(step.forward >= Duration(0) && step.backward >= Duration(0),
              "{}: a step of negative time", kWhat);
      mean_ += seconds(step.forward + step.backward) /
               static_cast<double>(steps.size() * workers.size());
    }
  }
}

ComputeTimes::ComputeTimes(std::span<const ComputeTime> steps, std::uint64_t seed)
    : ComputeTimes(Measured{{steps.begin(), steps.end()}}, seed) {}

ComputeTimes::ComputeTimes(std::span<const double> seconds, std::uint64_t seed, double forward)
    : ComputeTimes("constant:0", seed, forward) {
  std::vector<ComputeTime> steps;
  steps.reserve(seconds.size());
  for (const double time : seconds) {
    require(time >= 0 && time <= 1e6, "{}: a step of {} seconds", kWhat, time);
    steps.push_back(split(time));
  }
  *this = ComputeTimes(std::span<const ComputeTime>(steps), seed);
}

ComputeTime ComputeTimes::split(double seconds) const {
  const Duration whole = duration(seconds);
  const Duration first = duration(forward_ * seconds);
  return {first, whole - first};
}

ComputeTime ComputeTimes::at(Rank worker, Step step) const {
  if (const auto* constant = std::get_if<Constant>(&kind_)) {
    return split(constant->seconds);
  }
  const Random random = draws(seed_, Purpose::Compute).stream(worker.value);
  const auto index = static_cast<std::uint64_t>(step.value);
  if (const auto* measured = std::get_if<Measured>(&kind_)) {
    const std::vector<ComputeTime>& steps = (*measured)[worker.index() % measured->size()];
    return steps[random.below(steps.size(), index)];
  }
  if (const auto* times = std::get_if<ScaledTimes>(&kind_)) {
    return split(seconds(times->at(random, step)));
  }
  const double draw = random.normal(index);
  if (const auto* normal = std::get_if<Normal>(&kind_)) {
    return split(std::max(normal->mean + normal->deviation * draw, normal->mean / 100));
  }
  const auto& logarithmic = std::get<LogNormal>(kind_);
  const double deviation = logarithmic.deviation;
  return split(logarithmic.mean * std::exp(deviation * draw - deviation * deviation / 2));
}

}  // namespace starling
