#include "starling/workload/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

namespace starling::workload {
namespace {

constexpr Seconds kBarPeriod{0.2};
constexpr Seconds kLinePeriod{5};
constexpr std::size_t kBarWidth = 24;

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::ceil(seconds));
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

std::string progress_text(const Progress::State& state, std::uint64_t steps, double seconds_left,
                          bool has_bar) {
  const double part = steps == 0 ? 1 : static_cast<double>(state.step) / static_cast<double>(steps);
  std::string text;
  if (has_bar) {
    const auto full = static_cast<std::size_t>(part * kBarWidth);
    text = fmt::format("[{}{}] {:3.0f} %  ", std::string(full, '#'),
                       std::string(kBarWidth - full, '-'), 100 * part);
  }
  text += fmt::format("step {}/{}", state.step, steps);
  if (!std::isnan(state.loss)) {
    text += fmt::format("  loss {:.4g}", state.loss);
  }
  return text + fmt::format("  {:.0f} samples/s  stale {:.1f} %  {} left", state.samples_per_second,
                            100 * state.stale, clock_text(seconds_left));
}

Progress::Form Progress::form_here() {
  const char* wanted = std::getenv("STARLING_PROGRESS");
  if (wanted != nullptr && std::string_view(wanted) == "bar") {
    return Form::Marked;
  }
  return isatty(STDERR_FILENO) == 1 ? Form::Terminal : Form::Lines;
}

Progress::Progress(Form form, std::uint64_t steps) : form_(form), steps_(steps) {}

Progress::~Progress() {
  if (on_screen_) {
    fmt::print(stderr, "\r\033[K");
  }
}

bool Progress::due() const {
  return form_ != Form::Silent && std::chrono::steady_clock::now() - shown_ >
                                      (form_ == Form::Lines ? kLinePeriod : kBarPeriod);
}

void Progress::show(const State& state) {
  if (form_ == Form::Silent) {
    return;
  }
  shown_ = std::chrono::steady_clock::now();
  const double taken = seconds(shown_ - begin_);
  const double left = state.step == 0 ? 0
                                      : taken / static_cast<double>(state.step) *
                                            static_cast<double>(steps_ - state.step);
  const std::string text = progress_text(state, steps_, left, form_ != Form::Lines);
  if (form_ == Form::Terminal) {
    fmt::print(stderr, "\r\033[K{}", text);
    on_screen_ = true;
  } else {
    fmt::print(stderr, "{}{}\n", form_ == Form::Marked ? kMark : "", text);
  }
}

void Progress::say(const std::string& line) {
  if (form_ != Form::Silent) {
    fmt::print(stderr, "{}{}\n", on_screen_ ? "\r\033[K" : "", line);
    on_screen_ = false;
  }
}

}  // namespace starling::workload
