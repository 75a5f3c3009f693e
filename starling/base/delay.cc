#include "starling/base/delay.h"

#include "starling/base/draws.h"
#include "starling/base/error.h"
#include "starling/base/permutation.h"
#include "starling/base/time_words.h"

namespace starling {

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
    const auto rank = parse_number<std::uint32_t>(words[1]);
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
  if (ScaledTimes::names(text)) {
    kind_ = ScaledTimes::parse("delay", text);
    return;
  }
  const auto parts = split(text, 'x');
  require(parts.size() == 2 && words.size() == 1,
          "delay '{}': write COUNTxSECONDS, rank:R:SECONDS, ramp:SECONDS, rotating:FROM:TO or "
          "draw:NAME:MEAN, such as 2x0.05",
          text);
  const auto count = parse_number<std::uint32_t>(parts[0]);
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
    const bool late = Permutation(key, workers_).image(worker.value) < drawn->count;
    return late ? drawn->time : Duration{0};
  }
  return Duration{0};
}

}  // namespace starling
