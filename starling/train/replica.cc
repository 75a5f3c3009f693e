#include "starling/train/replica.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "starling/base/error.h"
#include "starling/kernels/update.h"

namespace starling::train {
namespace {

const comm::KernelArithmetic kArithmetic;

template <typename T>
const T* at(comm::ConstBlob blob, std::size_t element) {
  return blob.size == 0 ? nullptr : reinterpret_cast<const T*>(blob.data) + element;
}

template <typename T>
T* at(comm::Blob blob, std::size_t element) {
  return blob.size == 0 ? nullptr : reinterpret_cast<T*>(blob.data) + element;
}

double sum_of_squares(comm::Type type, const std::byte* values, std::size_t size) {
  return type == comm::Type::Float64
             ? kernels::sum_of_squares(reinterpret_cast<const double*>(values), size)
             : kernels::sum_of_squares(reinterpret_cast<const float*>(values), size);
}

}  // namespace

Replica::Replica(Desk& desk, comm::Workers& workers, const FlatLayout& layout,
                 std::span<const ParameterFacts> facts, std::span<const ParameterGroup> groups,
                 comm::Blob flat, FusedOptimizer* optimizer, Parameters& parameters,
                 const ReplicaOptions& options)
    : desk_(desk),
      workers_(workers),
      layout_(layout),
      facts_(facts),
      groups_(groups),
      flat_(flat),
      optimizer_(optimizer),
      parameters_(parameters),
      options_(options),
      taken_(facts.size(), 0),
      squares_(facts.size(), 0) {}

void Replica::resume(std::uint64_t step, std::vector<std::int64_t> taken, double last_norm,
                     double push_weight) {
  check(taken.size() == taken_.size(), "steps of {} parameters, not {}", taken.size(),
        taken_.size());
  step_ = step == 0 ? 0 : step - 1;
  taken_ = std::move(taken);
  norm_ = last_norm;
  push_weight_ = push_weight;
}

bool Replica::streams() const {
  return sends_gradients() || (optimizer_ != nullptr && options_.overlap);
}

comm::Buffer Replica::gradient() {
  if (gradient_.empty()) {
    gradient_.resize(elements() * comm::size_of(options_.type));
  }
  return {options_.type, {gradient_.data(), gradient_.size()}};
}

// --- A step, on the application's thread
// ----------------------------------------------------------

Task<bool> Replica::read_held(comm::Version v, comm::Blob into) {
  if (!read_held_) {
    co_return false;
  }
  co_await read_held_(v, into);
  co_return true;
}

void Replica::begin_step(std::uint64_t step, double samples, double gradient_scale) {
  step_ = step;
  samples_in_batch_ = samples;
  gradient_scale_ = gradient_scale;
  skipped_ = false;
  previous_norm_ = std::isfinite(norm_) ? norm_ : previous_norm_;
  std::fill(squares_.begin(), squares_.end(), 0);
}

void Replica::bucket_ready(std::size_t bucket) {
  if (!defers()) {
    work_off(bucket);
  }
}

void Replica::computed() {
  if (defers()) {
    look_at_gradients();
    for (std::size_t bucket = 0; bucket < layout_.buckets(); ++bucket) {
      work_off(bucket);
    }
  }
  if (options_.algorithm == nullptr) {
    comm::Update update;
    update.step = Step{static_cast<std::int64_t>(step_)};
    update.end = flat_.size;
    update.from = {options_.type, flat_};
    update.into = {options_.type, flat_};
    update_at_once(update);
  }
  if (is_ahead() && options_.clip != Clip::None) {
    norm_ = norm_so_far();
  }
}

void Replica::work_off(std::size_t bucket) {
  if (streaming_ != nullptr) {
    sends_gradients() ? send_gradients(bucket) : mix_and_update(bucket);
  } else if (sends_gradients()) {
    copy_gradients(bucket, gradient().blob);
  }
}

void Replica::send_gradients(std::size_t bucket) {
  copy_gradients(bucket, streaming_->snapshot().blob);
  workers_.post([streaming = streaming_, bucket, v = step_](comm::Engine&) {
    streaming->publish(bucket, v);
  });
}

// The flat gradient of a bucket, scaled and weighed; what is not finite is not sent.
void Replica::copy_gradients(std::size_t bucket, comm::Blob into) {
  const std::size_t size = comm::size_of(options_.type);
  const double weight = weighs_gradients() ? samples_in_batch_ / options_.batch : 1;
  const std::array<double, 1> scale = {gradient_scale_ * weight};
  for (const FlatLayout::Place& place : layout_.places_of(bucket)) {
    const comm::Blob part = into.slice(place.begin * size, place.end * size);
    const std::byte* gradient = skipped_ ? nullptr : parameters_.gradient(place.parameter);
    if (gradient == nullptr) {
      std::fill_n(part.data, part.size, std::byte{0});
    } else if (scale[0] == 1) {
      kArithmetic.copy(part, {gradient, part.size}, kernels::Store::Cached);
    } else {
      const std::array<comm::ConstBlob, 1> source = {comm::ConstBlob{gradient, part.size}};
      kArithmetic.mix(options_.type, part, source, scale);
    }
    parameters_.drop_gradient(place.parameter);
    if (!std::isfinite(sum_of_squares(options_.type, part.data, place.end - place.begin))) {
      diverged(place.parameter, "gradient");
    }
  }
  if (weighs_gradients() && bucket + 1 == layout_.buckets()) {
    const double sent = skipped_ ? 0 : weight;
    options_.type == comm::Type::Float64
        ? void(*at<double>(into, layout_.elements()) = sent)
        : void(*at<float>(into, layout_.elements()) = static_cast<float>(sent));
  }
}

void Replica::mix_and_update(std::size_t bucket) {
  if (!streaming_->is_there(bucket, step_)) {
    const auto since = std::chrono::steady_clock::now();
    workers_.run([this, bucket](comm::Engine&) { return streaming_->until_there(bucket, step_); });
    waited_ += std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - since);
  }
  comm::Update update;
  update.step = Step{static_cast<std::int64_t>(step_)};
  std::tie(update.begin, update.end) = streaming_->range(bucket);
  update.from = {options_.type, flat_};
  update.into = {options_.type, flat_};
  update.copy = streaming_->snapshot();
  update.rounded = streaming_->rounded();
  if (const std::optional<comm::Weights> weights = streaming_->weights(bucket, step_)) {
    update.result = streaming_->result();
    update.weights = *weights;
  }
  update_at_once(update);
  workers_.post([streaming = streaming_, bucket, v = step_ + 1](comm::Engine&) {
    streaming->publish(bucket, v);
  });
}

// Before anything is done with gradients that all have to be there: their norm, and whether one is
// not finite.
void Replica::look_at_gradients() {
  for (const FlatLayout::Place& place : layout_.places()) {
    squares_[place.parameter] = squares(place, nullptr) * gradient_scale_ * gradient_scale_;
  }
  skipped_ = options_.non_finite == NonFinite::Skip && !std::isfinite(norm_so_far());
}

double Replica::squares(const FlatLayout::Place& place, const std::byte* mean) const {
  const std::size_t size = comm::size_of(options_.type);
  const std::byte* gradient =
      mean != nullptr ? mean + place.begin * size : parameters_.gradient(place.parameter);
  return gradient == nullptr ? 0 : sum_of_squares(options_.type, gradient, place.end - place.begin);
}

// Parameters as registered, so that the norm depends neither on buckets nor on their order.
double Replica::norm_so_far() const {
  return std::sqrt(std::accumulate(squares_.begin(), squares_.end(), 0.0));
}

// --- Updates
// --------------------------------------------------------------------------------------

void Replica::update(Step, comm::Buffer) { check(false, "an update that is not made at once"); }

bool Replica::update_at_once(const comm::Update& update) {
  const bool of_mean = update.mean_gradient.blob.size != 0;
  double scale = of_mean ? update.of_mean_gradient : gradient_scale_;
  if (of_mean && weighs_gradients()) {
    const std::size_t last = layout_.elements();
    const double weights = options_.type == comm::Type::Float64
                               ? *at<double>(update.mean_gradient.blob, last)
                               : *at<float>(update.mean_gradient.blob, last);
    scale = weights == 0 ? 0 : 1 / weights;
  }
  scale *= clip_factor(update, scale);
  if (optimizer_ == nullptr) {
    update_torch(update, scale);
  } else if (options_.type == comm::Type::Float64) {
    update_places<double>(update, scale);
  } else {
    update_places<float>(update, scale);
  }
  return true;
}

// What gradients are multiplied by, after `scale`, so that their norm is at most clip_norm.
double Replica::clip_factor(const comm::Update& update, double scale) {
  if (options_.clip == Clip::None) {
    return 1;
  }
  const bool of_mean = update.mean_gradient.blob.size != 0;
  const std::size_t size = comm::size_of(options_.type);
  double here = 0;
  for (const FlatLayout::Place& place : layout_.places()) {
    if (place.begin * size >= update.begin && place.end * size <= update.end) {
      squares_[place.parameter] =
          squares(place, of_mean ? update.mean_gradient.blob.data : nullptr) * scale * scale;
      here += squares_[place.parameter];
    }
  }
  if (!is_ahead()) {
    norm_ = norm_so_far();
  }
  const double norm = options_.clip == Clip::Global    ? norm_so_far()
                      : options_.clip == Clip::Delayed ? previous_norm_
                                                       : std::sqrt(here);
  return norm > options_.clip_norm ? options_.clip_norm / norm : 1;
}

template <typename T>
void Replica::update_places(const comm::Update& update, double scale) {
  const bool of_mean = update.mean_gradient.blob.size != 0;
  const double weight = options_.weigh_samples && !of_mean ? samples_in_batch_ / options_.batch : 1;
  const double rate = lr_factor() * weight;
  for (const FlatLayout::Place& place : layout_.places()) {
    if (place.begin * sizeof(T) < update.begin || place.end * sizeof(T) > update.end ||
        place.begin == place.end) {
      continue;
    }
    const auto* own = skipped_ || of_mean
                          ? nullptr
                          : reinterpret_cast<const T*>(parameters_.gradient(place.parameter));
    kernels::Streams<T> streams;
    streams.size = place.end - place.begin;
    streams.from = at<T>(update.from.blob, place.begin);
    streams.into = at<T>(update.into.blob, place.begin);
    streams.copy = at<T>(update.copy.blob, place.begin);
    streams.result = at<T>(update.result.blob, place.begin);
    streams.of_from = static_cast<T>(update.weights.of_own);
    streams.of_result = static_cast<T>(update.weights.of_result);
    streams.rounded = update.rounded && !update.weights.exact;
    streams.gradient = of_mean ? at<T>(update.mean_gradient.blob, place.begin) : own;
    streams.gradient_scale = static_cast<T>(scale);
    if (streams.gradient != nullptr) {
      ++taken_[place.parameter];
    }
    if (!optimizer_->update(place.begin, taken_[place.parameter], rate, groups_[place.parameter],
                            streams)) {
      diverged(place.parameter, "value");
    }
    parameters_.drop_gradient(place.parameter);
    parameters_.moved(place.parameter);
  }
}

// Mixing, the step and the copies are passes of their own.
void Replica::update_torch(const comm::Update& update, double scale) {
  if (update.result.blob.size != 0) {
    comm::average_into(kArithmetic, {options_.type, flat_}, update.result, update.from,
                       update.weights, update.rounded);
  } else if (update.from.blob.data != flat_.data) {
    kArithmetic.copy(flat_, update.from.blob, kernels::Store::Cached);
  }
  if (!skipped_ || update.mean_gradient.blob.size != 0) {
    const double weight =
        options_.weigh_samples && !sends_gradients() ? samples_in_batch_ / options_.batch : 1;
    parameters_.torch_step(lr_factor() * weight, update.mean_gradient.blob.data, scale);
  }
  for (const FlatLayout::Place& place : layout_.places()) {
    if (!std::isfinite(sum_of_squares(options_.type,
                                      flat_.data + place.begin * comm::size_of(options_.type),
                                      place.end - place.begin))) {
      diverged(place.parameter, "value");
    }
    parameters_.drop_gradient(place.parameter);
    parameters_.moved(place.parameter);
  }
  for (const comm::Blob into : {update.into.blob, update.copy.blob}) {
    if (into.size != 0 && into.data != flat_.data) {
      kArithmetic.copy(into, flat_, kernels::Store::Cached);
    }
  }
}

void Replica::diverged(std::size_t parameter, std::string_view what) const {
  throw Error(ErrorCode::Diverged,
              fmt::format("worker {}, step {}: a {} of parameter {} is not finite; nothing of it "
                          "was sent",
                          options_.rank, step_, what, facts_[parameter].name));
}

}  // namespace starling::train
