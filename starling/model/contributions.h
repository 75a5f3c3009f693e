// What a worker that is late contributes: the newest it has handed over. Times are asked in rising
// order, so that each hand-over is looked at once.
#pragma once

#include <cstdint>
#include <deque>

namespace starling::model {

class Contributions {
 public:
  // Hand-overs are numbered from `first` on; what lies before is there from the start.
  explicit Contributions(std::int64_t first) : newest_(first - 1) {}

  // The next one is there at `when`.
  void hand_over(double when) { waiting_.push_back(when); }
  // The number of the newest that is there at `when`.
  std::int64_t newest(double when) {
    while (!waiting_.empty() && waiting_.front() <= when) {
      waiting_.pop_front();
      ++newest_;
    }
    return newest_;
  }

 private:
  std::int64_t newest_;
  std::deque<double> waiting_;
};

}  // namespace starling::model
