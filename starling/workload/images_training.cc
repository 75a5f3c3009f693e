#include "starling/workload/images_training.h"

#include <optional>

namespace starling::workload {
namespace {

std::optional<std::uint32_t> narrow(const std::optional<std::int64_t>& value) {
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

train::Clip clip_of(const ImagesOptions& options) {
  if (!options.clip) {
    return train::Clip::None;
  }
  return options.clip_mode == "global"    ? train::Clip::Global
         : options.clip_mode == "delayed" ? train::Clip::Delayed
                                          : train::Clip::Bucket;
}

template <typename Adam>
Adam adam(const ImagesOptions& options) {
  Adam made;
  made.lr = *options.lr;
  made.beta1 = *options.beta1;
  made.beta2 = *options.beta2;
  made.epsilon = *options.epsilon;
  made.weight_decay = *options.weight_decay;
  if constexpr (requires { made.window; }) {
    made.window = static_cast<std::uint32_t>(*options.window);
  }
  return made;
}

}  // namespace

train::Options training_options(const ImagesOptions& options, std::size_t workers,
                                std::uint64_t steps) {
  const double samples = static_cast<double>(steps) * static_cast<double>(options.batch) *
                         static_cast<double>(workers);
  train::Options made;
  made.algorithm = options.algorithm;
  made.schedule = options.schedule;
  made.group_size = narrow(options.group_size);
  made.peers = static_cast<std::uint32_t>(options.peers);
  made.sync_period = narrow(options.sync_period);
  made.averaging = options.averaging;
  made.trigger = options.trigger;
  made.age_bound = narrow(options.age_bound);
  made.seed = static_cast<std::uint64_t>(options.seed);
  made.steps = steps;
  made.bucket_bytes = static_cast<std::size_t>(options.bucket_bytes);
  made.overlap = !options.no_overlap;
  made.gradient_at_mixed = options.gradient_at == "mixed";
  made.bf16 = options.bf16;
  made.clip = clip_of(options);
  made.clip_norm = options.clip.value_or(1);
  made.non_finite = options.non_finite == "skip" ? train::NonFinite::Skip : train::NonFinite::Stop;
  made.learning_rate = train::parse_learning_rate(options.lr_schedule, samples);
  made.batch = static_cast<double>(options.batch);
  return made;
}

train::Optimizer make_optimizer(const ImagesOptions& options) {
  if (options.optimizer == "sgd") {
    train::SGD sgd;
    sgd.lr = *options.lr;
    sgd.momentum = *options.momentum;
    sgd.nesterov = options.nesterov;
    sgd.weight_decay = *options.weight_decay;
    return sgd;
  }
  if (options.optimizer == "adam") {
    return adam<train::Adam>(options);
  }
  if (options.optimizer == "adamw") {
    return adam<train::AdamW>(options);
  }
  return options.optimizer == "accum-adam" ? train::Optimizer(adam<train::AccumAdam>(options))
                                           : train::Optimizer(adam<train::AccumAdamW>(options));
}

}  // namespace starling::workload
