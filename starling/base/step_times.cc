#include "starling/base/step_times.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "starling/base/error.h"
#include "starling/base/suggestion.h"
#include "starling/base/time_words.h"

namespace starling {
namespace {

using Bin = StepTimes::Bin;

constexpr std::array<std::string_view, 5> kNames = {"translation", "navigation", "video",
                                                    "sentences", "cloud"};

// Wait-avoiding group averaging, figure 6: bins of 20 ms.
constexpr std::array<double, 32> kTranslation = {8,  16, 31, 57, 62, 61, 80, 80, 66, 69, 54,
                                                 29, 43, 54, 48, 43, 33, 23, 11, 18, 13, 15,
                                                 14, 12, 5,  3,  9,  13, 18, 10, 3,  1};

// Figure 9: quarters of 5,000 iterations, then what lies outside the whiskers.
constexpr std::array<Bin, 12> kNavigation = {{{1.70, 1.778, 1250},
                                              {1.778, 1.806, 1250},
                                              {1.806, 1.876, 1250},
                                              {1.876, 2.02, 736},
                                              {2.02, 2.2, 182},
                                              {2.2, 2.4, 39},
                                              {2.4, 2.55, 52},
                                              {4.3, 5.2, 159},
                                              {9.4, 11, 12},
                                              {11, 12, 50},
                                              {12, 14, 19},
                                              {43.5, 43.5, 1}}};

// The beta distribution on [least, most] that has this mean and deviation.
std::vector<Bin> between(double least, double most, double mean, double deviation) {
  constexpr int kBins = 2000;
  const double width = most - least;
  const double share = (mean - least) / width;
  const double spread = deviation / width;
  const double both = share * (1 - share) / (spread * spread) - 1;
  const double a = share * both;
  const double b = (1 - share) * both;
  std::vector<Bin> bins;
  for (int i = 0; i < kBins; ++i) {
    const double low = static_cast<double>(i) / kBins;
    const double high = static_cast<double>(i + 1) / kBins;
    // Of x^(a-1) (1-x)^(b-1), of which the first may rise without bound at 0.
    const double weight =
        (std::pow(high, a) - std::pow(low, a)) / a * std::pow(1 - (low + high) / 2, b - 1);
    bins.push_back({least + width * low, least + width * high, weight});
  }
  return bins;
}

}  // namespace

StepTimes::StepTimes(std::span<const Bin> bins) : bins_(bins.begin(), bins.end()) {
  double all = 0;
  for (const Bin& bin : bins_) {
    require(bin.low >= 0 && bin.high >= bin.low && bin.weight >= 0,
            "times from {} to {} with weight {}", bin.low, bin.high, bin.weight);
    all += bin.weight;
  }
  require(all > 0, "a distribution of no times");
  double squares = 0;
  double share = 0;
  for (const Bin& bin : bins_) {
    const double part = bin.weight / all;
    share += part;
    shares_.push_back(share);
    mean_ += part * (bin.low + bin.high) / 2;
    squares += part * (bin.low * bin.low + bin.low * bin.high + bin.high * bin.high) / 3;
  }
  deviation_ = std::sqrt(std::max(0.0, squares - mean_ * mean_));
}

StepTimes StepTimes::published(std::string_view name) {
  if (name == "translation") {
    std::vector<Bin> bins;
    double low = 0.07;
    for (const double weight : kTranslation) {
      bins.push_back({low, low + 0.02, weight});
      low += 0.02;
    }
    return StepTimes(bins);
  }
  if (name == "navigation") {
    return StepTimes(kNavigation);
  }
  if (name == "video") {
    return StepTimes(between(0.201, 3.410, 1.235, 0.706));
  }
  if (name == "sentences") {
    return StepTimes(between(0.179, 3.482, 0.475, 0.144));
  }
  require(name == "cloud", "unknown distribution '{}'; did you mean '{}'? ({})", name,
          nearest(name, names()), fmt::join(kNames, ", "));
  return StepTimes(between(0.399, 1.892, 0.454, 0.116));
}

std::span<const std::string_view> StepTimes::names() { return kNames; }

double StepTimes::quantile(double share) const {
  if (share >= 1) {
    return bins_.back().high;
  }
  const auto place = std::lower_bound(shares_.begin(), shares_.end(), share);
  const auto i = static_cast<std::size_t>(
      std::min<std::ptrdiff_t>(place - shares_.begin(), std::ssize(shares_) - 1));
  const double before = i == 0 ? 0 : shares_[i - 1];
  const double part = shares_[i] - before;
  const double along = part == 0 ? 0 : std::clamp((share - before) / part, 0.0, 1.0);
  return bins_[i].low + along * (bins_[i].high - bins_[i].low);
}

ScaledTimes ScaledTimes::parse(std::string_view what, std::string_view text) {
  const auto words = split(text, ':');
  require(words.size() == 3, "{} '{}': write draw:NAME:MEAN, such as draw:translation:0.3", what,
          text);
  StepTimes times = StepTimes::published(words[1]);
  const double factor = parse_seconds(what, text, words[2]) / times.mean();
  return {std::move(times), factor};
}

Duration ScaledTimes::at(const Random& random, Step step) const {
  return duration(factor_ * times_.draw(random, static_cast<std::uint64_t>(step.value)));
}

}  // namespace starling
