// What a prediction is made of: what the recurrences tell about each step, and the arithmetic that
// makes means and intervals of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "starling/model/predict.h"

namespace starling::model {

class Observation {
 public:
  // `period`: of the schedule; means are taken over whole ones, if there are enough steps.
  Observation(const Setting& setting, std::optional<std::int64_t> period);

  // A worker needs at `asked` what is there at `there`; the last it waits for came at `arrived`.
  void wait(Rank worker, std::int64_t step, std::size_t bucket, double asked, double arrived,
            double there);
  void exchange(Rank worker, std::int64_t step, std::size_t bucket, double start, double end);
  void update(Rank worker, std::int64_t step, std::size_t bucket, double start, double end);
  // Delay, forward, and the backward pass of every bucket, from `start` on; when it has ended.
  // Rows that update inside the backward pass tell its buckets themselves.
  double compute(Rank worker, std::int64_t step, const StepTime& time, double start);
  double forward(Rank worker, std::int64_t step, const StepTime& time, double start);
  void backward(Rank worker, std::int64_t step, std::size_t bucket, double start, double end);
  // A round got a contribution that was `age` steps old.
  void contribution(std::int64_t step, std::int64_t age);
  // Step `step` of a worker ended. Told for all workers before the next step.
  void ended(double when) { sum_of_ends_ += when; }
  void end_step();

  Prediction result() const;

 private:
  void record(TaskKind kind, Rank worker, std::int64_t step, std::size_t bucket, double start,
              double end) const;
  bool counts(std::int64_t step) const { return step >= first_; }

  const Setting& setting_;
  std::int64_t batch_ = 0;  // steps of a batch
  std::int64_t first_ = 0;  // that counts
  std::vector<double> shares_;
  double sum_of_ends_ = 0;
  std::vector<double> ends_;  // mean over workers, of each step
  Waiting waiting_;
  double update_ = 0;
  double exchange_ = 0;
  std::vector<std::uint64_t> ages_;
  std::uint64_t free_ = 0;   // contributions to rounds that are no syncs
  std::uint64_t stale_ = 0;  // of these
};

// Of the backward pass, per bucket.
std::vector<double> shares_of(const Setting& setting);

}  // namespace starling::model
