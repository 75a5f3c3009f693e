// How far the run has come, on stderr, from the one worker that tells it:
//   a bar that is written over    where stderr is a terminal
//   plain lines, seconds apart    elsewhere
//   a line per bar, after kMark   if STARLING_PROGRESS=bar: for `starling train`, which shows it
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "starling/base/time.h"

namespace starling::workload {

class Progress {
 public:
  static constexpr std::string_view kMark = "\x01";

  struct State {
    std::uint64_t step = 0;  // done
    double loss = 0;         // NaN: there is none
    double samples_per_second = 0;
    double stale = 0;  // fraction
  };

  enum class Form : std::uint8_t { Silent, Terminal, Lines, Marked };
  // What suits stderr and the environment.
  static Form form_here();

  Progress(Form form, std::uint64_t steps);
  // Takes the bar away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether it is time to show() again.
  bool due() const;
  void show(const State& state);
  // A line that stays.
  void say(const std::string& line);

 private:
  Form form_;
  std::uint64_t steps_;
  WallTime begin_ = std::chrono::steady_clock::now();
  WallTime shown_ = begin_;
  bool on_screen_ = false;
};

// "[#####-----]  50 %  step 100/200  loss 0.412  12300 samples/s  stale 3.1 %  0:12 left"
std::string progress_text(const Progress::State& state, std::uint64_t steps, double seconds_left,
                          bool has_bar);

}  // namespace starling::workload
