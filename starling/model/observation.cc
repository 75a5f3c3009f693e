#include "starling/model/observation.h"

#include <algorithm>
#include <cmath>

namespace starling::model {
namespace {

constexpr std::int64_t kBatches = 20;
constexpr double kStudent = 2.093;  // 95 %, 19 degrees of freedom
constexpr std::size_t kMostAge = 63;

}  // namespace

std::vector<double> shares_of(const Setting& setting) {
  if (!setting.shares.empty()) {
    return setting.shares;
  }
  return std::vector<double>(setting.buckets, 1.0 / static_cast<double>(setting.buckets));
}

Observation::Observation(const Setting& setting, std::optional<std::int64_t> period)
    : setting_(setting), shares_(shares_of(setting)), ages_(kMostAge + 1) {
  const auto steps = static_cast<std::int64_t>(setting.steps);
  batch_ = std::max<std::int64_t>(1, steps * 9 / 10 / kBatches);
  if (period && *period <= batch_) {
    batch_ -= batch_ % *period;
  }
  first_ = std::max<std::int64_t>(0, steps - kBatches * batch_);
  ends_.reserve(setting.steps);
}

void Observation::record(TaskKind kind, Rank worker, std::int64_t step, std::size_t bucket,
                         double start, double end) const {
  if (setting_.record) {
    setting_.record({kind, worker, Step{step}, bucket, start, end});
  }
}

void Observation::wait(Rank worker, std::int64_t step, std::size_t bucket, double asked,
                       double arrived, double there) {
  if (there <= asked) {
    return;
  }
  record(TaskKind::Wait, worker, step, bucket, asked, there);
  if (counts(step)) {
    const double last = std::clamp(arrived, asked, there);
    waiting_.straggler += last - asked;
    waiting_.exchange += there - last;
  }
}

void Observation::exchange(Rank worker, std::int64_t step, std::size_t bucket, double start,
                           double end) {
  record(TaskKind::Exchange, worker, step, bucket, start, end);
  if (counts(step)) {
    exchange_ += end - start;
  }
}

void Observation::update(Rank worker, std::int64_t step, std::size_t bucket, double start,
                         double end) {
  record(TaskKind::Update, worker, step, bucket, start, end);
  if (counts(step)) {
    update_ += end - start;
  }
}

double Observation::forward(Rank worker, std::int64_t step, const StepTime& time, double start) {
  const double begin = start + time.delay;
  if (time.delay > 0) {
    record(TaskKind::Delay, worker, step, 0, start, begin);
  }
  record(TaskKind::Forward, worker, step, 0, begin, begin + time.forward);
  return begin + time.forward;
}

void Observation::backward(Rank worker, std::int64_t step, std::size_t bucket, double start,
                           double end) {
  record(TaskKind::Backward, worker, step, bucket, start, end);
}

double Observation::compute(Rank worker, std::int64_t step, const StepTime& time, double start) {
  double clock = forward(worker, step, time, start);
  for (std::size_t k = 0; k < shares_.size(); ++k) {
    const double end = clock + shares_[k] * time.backward;
    backward(worker, step, k, clock, end);
    clock = end;
  }
  return clock;
}

void Observation::contribution(std::int64_t step, std::int64_t age) {
  if (!counts(step)) {
    return;
  }
  ++ages_[std::min(static_cast<std::size_t>(std::max<std::int64_t>(age, 0)), kMostAge)];
  if (!is_sync(setting_, step)) {
    ++free_;
    stale_ += age > 0 ? 1 : 0;
  }
}

void Observation::end_step() {
  ends_.push_back(sum_of_ends_ / setting_.workers);
  sum_of_ends_ = 0;
}

Prediction Observation::result() const {
  Prediction result;
  const auto end_of = [&](std::int64_t step) {
    return step < 0 ? 0.0 : ends_[static_cast<std::size_t>(step)];
  };
  const auto steps = static_cast<std::int64_t>(ends_.size());
  const auto counted = static_cast<double>(steps - first_);
  result.step = (end_of(steps - 1) - end_of(first_ - 1)) / counted;
  double squares = 0;
  const std::int64_t batches = (steps - first_) / batch_;
  for (std::int64_t i = 0; i < batches; ++i) {
    const std::int64_t begin = first_ + i * batch_;
    const double mean =
        (end_of(begin + batch_ - 1) - end_of(begin - 1)) / static_cast<double>(batch_);
    squares += (mean - result.step) * (mean - result.step);
  }
  if (batches == kBatches) {
    result.interval = kStudent * std::sqrt(squares / (kBatches * (kBatches - 1)));
  }
  const double worker_steps = counted * setting_.workers;
  result.waiting = {.straggler = waiting_.straggler / worker_steps,
                    .exchange = waiting_.exchange / worker_steps};
  result.update = update_ / worker_steps;
  result.exchange = exchange_ / worker_steps;
  if (result.exchange > 0) {
    result.overlap = std::clamp(1 - result.waiting.exchange / result.exchange, 0.0, 1.0);
  }
  if (free_ > 0) {
    result.stale = static_cast<double>(stale_) / static_cast<double>(free_);
  }
  result.ages = ages_;
  while (result.ages.size() > 1 && result.ages.back() == 0) {
    result.ages.pop_back();
  }
  return result;
}

}  // namespace starling::model
