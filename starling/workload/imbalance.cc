#include "starling/workload/imbalance.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "starling/base/error.h"
#include "starling/topology/permutation.h"
#include "starling/workload/draws.h"

namespace starling::workload {
namespace {

constexpr double kMostSeconds = 3600;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; (end = text.find(at)) != std::string_view::npos;) {
    words.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  words.push_back(text);
  return words;
}

template <typename Number>
std::optional<Number> parse(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(number)
                                                                  : std::nullopt;
}

double parse_seconds(std::string_view what, std::string_view text, std::string_view word) {
  const auto value = parse<double>(word);
  require(value && *value >= 0 && *value <= kMostSeconds,
          "{} '{}': '{}' is not a time; allowed are 0 to {} seconds", what, text, word,
          kMostSeconds);
  return *value;
}

Duration duration(double seconds) { return std::chrono::round<Duration>(Seconds(seconds)); }

ScaledTimes parse_times(std::string_view what, std::string_view text,
                        const std::vector<std::string_view>& words) {
  ScaledTimes times{StepTimes::published(words[1])};
  times.factor = parse_seconds(what, text, words[2]) / times.times.mean();
  return times;
}

bool names_times(const std::vector<std::string_view>& words) {
  return words[0] == "draw" && words.size() == 3;
}

}  // namespace

Duration ScaledTimes::at(const Random& random, Step step) const {
  return duration(factor * times.draw(random, static_cast<std::uint64_t>(step.value)));
}

Delay::Delay(std::string_view text, std::uint32_t workers, std::uint64_t seed)
    : workers_(workers), seed_(seed) {
  const auto time = [&](std::string_view word) {
    return duration(parse_seconds("delay", text, word));
  };
  if (text.empty()) {
    return;
  }
  const auto words = split(text, ':');
  if (words[0] == "rank" && words.size() == 3) {
    const auto rank = parse<std::uint32_t>(words[1]);
    require(rank && *rank < workers, "delay '{}': '{}' is not a rank; allowed are 0 to {}", text,
            words[1], workers - 1);
    kind_ = One{Rank{*rank}, time(words[2])};
    return;
  }
  if (words[0] == "ramp" && words.size() == 2) {
    kind_ = Ramp{time(words[1])};
    return;
  }
  if (words[0] == "rotating" && words.size() == 3) {
    kind_ = Rotating{time(words[1]), time(words[2])};
    return;
  }
  if (names_times(words)) {
    kind_ = parse_times("delay", text, words);
    return;
  }
  const auto parts = split(text, 'x');
  require(parts.size() == 2 && words.size() == 1,
          "delay '{}': write COUNTxSECONDS, rank:R:SECONDS, ramp:SECONDS, rotating:FROM:TO or "
          "draw:NAME:MEAN, such as 2x0.05",
          text);
  const auto count = parse<std::uint32_t>(parts[0]);
  require(count && *count <= workers,
          "delay '{}': '{}' is not a number of workers; allowed are 0 to {}", text, parts[0],
          workers);
  kind_ = Drawn{*count, time(parts[1])};
}

Duration Delay::delay(Rank worker, Step step) const {
  if (const auto* one = std::get_if<One>(&kind_)) {
    return worker == one->worker ? one->time : Duration{0};
  }
  if (const auto* ramp = std::get_if<Ramp>(&kind_)) {
    return worker.value * ramp->time;
  }
  if (const auto* rotating = std::get_if<Rotating>(&kind_)) {
    const auto place = (worker.value + static_cast<std::uint64_t>(step.value)) % workers_;
    const double along =
        workers_ == 1 ? 0 : static_cast<double>(place) / static_cast<double>(workers_ - 1);
    return rotating->from + std::chrono::round<Duration>(along * (rotating->to - rotating->from));
  }
  if (const auto* times = std::get_if<ScaledTimes>(&kind_)) {
    return times->at(draws(seed_, Purpose::Delay).stream(worker.value), step);
  }
  if (const auto* drawn = std::get_if<Drawn>(&kind_)) {
    // Workers in an order drawn for this step; the first ones are late.
    const auto key = draws(seed_, Purpose::Delay).stream(step.value);
    const bool late = topology::Permutation(key, workers_).image(worker.value) < drawn->count;
    return late ? drawn->time : Duration{0};
  }
  return Duration{0};
}

EmulatedCompute::EmulatedCompute(std::string_view text, std::uint64_t seed) : seed_(seed) {
  const auto words = split(text, ':');
  if (names_times(words)) {
    times_ = parse_times("emulated computation", text, words);
    return;
  }
  require(words.size() == 2 || words.size() == 3,
          "emulated computation '{}': write FORWARD:BACKWARD, FORWARD:BACKWARD:VARIATION or "
          "draw:NAME:MEAN, such as 0.010:0.020:0.3",
          text);
  forward_ = parse_seconds("emulated computation", text, words[0]);
  backward_ = parse_seconds("emulated computation", text, words[1]);
  if (words.size() == 3) {
    const auto variation = parse<double>(words[2]);
    require(
        variation && *variation >= 0 && *variation <= 10,
        "emulated computation '{}': '{}' is not a coefficient of variation; allowed are 0 to 10",
        text, words[2]);
    deviation_ = std::sqrt(std::log1p(*variation * *variation));
  }
}

Emulated EmulatedCompute::at(Rank worker, Step step) const {
  const Random of_worker = draws(seed_, Purpose::Compute).stream(worker.value);
  if (times_) {
    const Duration whole = times_->at(of_worker, step);
    return {whole / 3, whole - whole / 3};
  }
  const double factor =
      std::exp(deviation_ * of_worker.normal(step.value) - deviation_ * deviation_ / 2);
  return {duration(factor * forward_), duration(factor * backward_)};
}

}  // namespace starling::workload
