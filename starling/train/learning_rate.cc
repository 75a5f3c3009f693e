#include "starling/train/learning_rate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "starling/base/error.h"

namespace starling::train {

namespace {

double warmed_up(double samples, double warmup, double first) {
  return first + (1 - first) * samples / warmup;
}

void require_warmup(double warmup, double first) {
  require(std::isfinite(warmup) && warmup >= 0,
          "learning rate: the warm-up must be a number of at least 0 samples, and is {}", warmup);
  require(first >= 0 && first <= 1,
          "learning rate: a warm-up starts at a factor from 0 to 1, and not at {}", first);
}

// Reads the text of one learning rate.
class Parser {
 public:
  Parser(std::string_view text, double total) : text_(text), total_(total) {}

  LearningRate parse() const {
    const auto [name, rest] = cut(text_, ':');
    const bool has_rest = name.size() < text_.size();
    if (name == "constant" && !has_rest) {
      return constant_rate();
    }
    if (name == "cosine") {
      return warmup_cosine(has_rest ? samples(rest) : 0, total_);
    }
    if (name == "sqrt" && has_rest) {
      return inverse_square_root(samples(rest));
    }
    if (name == "step" && has_rest) {
      return steps(rest);
    }
    fail();
  }

 private:
  using Two = std::pair<std::string_view, std::string_view>;

  static Two cut(std::string_view text, char at) {
    const std::size_t place = std::min(text.find(at), text.size());
    return {text.substr(0, place), text.substr(std::min(place + 1, text.size()))};
  }

  LearningRate steps(std::string_view text) const {
    const auto [places, factor] = cut(text, ':');
    std::vector<double> at;
    for (std::string_view left = places;;) {
      const auto [place, rest] = cut(left, ',');
      at.push_back(samples(place));
      if (place.size() == left.size()) {
        break;
      }
      left = rest;
    }
    const bool has_factor = places.size() < text.size();
    return has_factor ? step_rate(std::move(at), number(factor)) : step_rate(std::move(at));
  }

  double samples(std::string_view text) const {
    if (!text.ends_with('%')) {
      return number(text);
    }
    require(std::isfinite(total_) && total_ > 0,
            "learning rate '{}': per cent of what? The samples of the whole training are not known",
            text_);
    return number(text.substr(0, text.size() - 1)) / 100 * total_;
  }

  double number(std::string_view text) const {
    double value = 0;
    const char* const end = std::to_address(text.end());
    const auto [rest, error] = std::from_chars(std::to_address(text.begin()), end, value);
    if (error != std::errc() || rest != end) {
      fail();
    }
    return value;
  }

  [[noreturn]] void fail() const {
    throw Error(ErrorCode::Input,
                fmt::format("learning rate '{}': expected constant, cosine[:WARMUP], sqrt:WARMUP "
                            "or step:AT,AT,…[:FACTOR], with samples or per cent of all (5%)",
                            text_));
  }

  std::string_view text_;
  double total_;
};

}  // namespace

LearningRate constant_rate() {
  return [](double) { return 1.0; };
}

LearningRate warmup_cosine(double warmup, double total, double first, double last) {
  require_warmup(warmup, first);
  require(std::isfinite(total) && total > 0,
          "learning rate: a cosine needs to know the samples of the whole training");
  require(warmup <= total, "learning rate: a warm-up of {} samples is longer than training, {}",
          warmup, total);
  require(last >= 0 && last <= 1,
          "learning rate: a cosine ends at a factor from 0 to 1, and not at {}", last);
  return [=](double samples) {
    if (samples < warmup) {
      return warmed_up(samples, warmup, first);
    }
    if (samples >= total) {
      return last;
    }
    const double part = (samples - warmup) / (total - warmup);
    return last + (1 - last) * (1 + std::cos(std::numbers::pi * part)) / 2;
  };
}

LearningRate inverse_square_root(double warmup, double first) {
  require_warmup(warmup, first);
  require(warmup > 0, "learning rate: the inverse square root needs a warm-up");
  return [=](double samples) {
    return samples < warmup ? warmed_up(samples, warmup, first) : std::sqrt(warmup / samples);
  };
}

LearningRate step_rate(std::vector<double> at, double factor) {
  require(!at.empty(), "learning rate: steps at no number of samples");
  for (std::size_t i = 0; i < at.size(); ++i) {
    require(std::isfinite(at[i]) && at[i] >= 0 && (i == 0 || at[i - 1] < at[i]),
            "learning rate: steps are at numbers of samples that rise, and {} does not", at[i]);
  }
  require(std::isfinite(factor) && factor >= 0,
          "learning rate: the factor of a step must be a number of at least 0, and is {}", factor);
  return [at = std::move(at), factor](double samples) {
    const auto passed = std::upper_bound(at.begin(), at.end(), samples) - at.begin();
    return std::pow(factor, static_cast<double>(passed));
  };
}

LearningRate parse_learning_rate(std::string_view text, double total) {
  return Parser(text, total).parse();
}

}  // namespace starling::train
