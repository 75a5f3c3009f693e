#include "starling/workload/images_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "starling/base/compute_times.h"
#include "starling/base/delay.h"
#include "starling/base/error.h"
#include "starling/base/suggestion.h"
#include "starling/comm/trigger.h"
#include "starling/topology/algorithm.h"
#include "starling/topology/schedule.h"
#include "starling/train/learning_rate.h"
#include "starling/workload/image_models.h"

namespace starling::workload {
namespace {

using nlohmann::ordered_json;
using Words = std::vector<std::string_view>;

constexpr double kMostSteps = 1e12;
// As eager-SGD's paper has it.
constexpr double kModelSyncEpochs = 10;

void require_word(std::string_view option, std::string_view word, const Words& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) {
    return;
  }
  const std::string_view near = nearest(word, known);
  const bool is_meant = edit_distance(word, near) <= std::max<std::size_t>(2, word.size() / 2);
  require(false, "{}: unknown '{}'{} ({})", option, word,
          is_meant ? fmt::format("; did you mean '{}'?", near) : "", fmt::join(known, ", "));
}

void require_between(std::string_view option, double value, double least, double most) {
  require(value >= least && value <= most, "{} must be between {} and {}, not {}", option, least,
          most, value);
}
void require_least(std::string_view option, std::int64_t value, std::int64_t least) {
  require(value >= least, "{} must be at least {}, not {}", option, least, value);
}
// Of [0, 1), as factors of moments are.
void require_factor(std::string_view option, const std::optional<double>& value) {
  require(!value || (*value >= 0 && *value < 1), "{} must be at least 0 and less than 1, not {}",
          option, value.value_or(0));
}

bool is_adam(std::string_view optimizer) { return optimizer != "sgd"; }
bool is_accumulated(std::string_view optimizer) { return optimizer.starts_with("accum"); }

void settle_optimizer(ImagesOptions& o) {
  if (o.optimizer.empty()) {
    o.optimizer = o.algorithm == "accum-adam" ? "accum-adam"
                  : o.algorithm == "dadam"    ? "adam"
                                              : "sgd";
  }
  require_word("--optimizer", o.optimizer, {"sgd", "adam", "adamw", "accum-adam", "accum-adamw"});
  const bool adam = is_adam(o.optimizer);
  require(!adam || (!o.momentum && !o.nesterov), "--{} belongs to --optimizer sgd, not to {}",
          o.momentum ? "momentum" : "nesterov", o.optimizer);
  require(adam || (!o.beta1 && !o.beta2 && !o.epsilon),
          "--{} belongs to the Adam optimizers, not to sgd",
          o.beta1   ? "beta1"
          : o.beta2 ? "beta2"
                    : "epsilon");
  require(!o.window || is_accumulated(o.optimizer),
          "--window belongs to --optimizer accum-adam and accum-adamw, not to {}", o.optimizer);
  o.lr = o.lr.value_or(adam ? 1e-3 : 0.05);
  require_between("--lr", *o.lr, 0, 1e6);
  o.weight_decay = o.weight_decay.value_or(o.optimizer.ends_with("adamw") ? 0.01 : 0);
  require_between("--weight-decay", *o.weight_decay, 0, 1e6);
  if (!adam) {
    o.momentum = o.momentum.value_or(0.9);
    require_factor("--momentum", o.momentum);
    require(!o.nesterov || *o.momentum > 0, "--nesterov needs a --momentum above 0");
    return;
  }
  o.beta1 = o.beta1.value_or(0.9);
  o.beta2 = o.beta2.value_or(0.999);
  o.epsilon = o.epsilon.value_or(1e-8);
  require_factor("--beta1", o.beta1);
  require_factor("--beta2", o.beta2);
  require(*o.epsilon > 0 && *o.epsilon <= 1, "--epsilon must be above 0 and at most 1, not {}",
          *o.epsilon);
  if (is_accumulated(o.optimizer)) {
    o.window = o.window.value_or(4);
    require_between("--window", static_cast<double>(*o.window), 1, 1e6);
  }
}

void settle_algorithm(ImagesOptions& o, std::size_t workers) {
  if (!o.trigger.empty()) {
    static_cast<void>(comm::parse_trigger("--trigger", o.trigger, workers));
  }
  require_word("--gradient-at", o.gradient_at, {"own", "mixed"});
  const auto count = static_cast<std::int64_t>(workers);
  if (o.group_size) {
    require_least("--group-size", *o.group_size, 1);
    require(*o.group_size <= count, "--group-size {} is more than the {} worker{} of the job",
            *o.group_size, count, count == 1 ? "" : "s");
  }
  require_between("--peers", static_cast<double>(o.peers), 1, 1e6);
  if (o.sync_period) {
    require_between("--sync-period", static_cast<double>(*o.sync_period), 1, 1e9);
  }
  if (o.model_sync) {
    require_between("--model-sync", *o.model_sync, 0, 1e6);
  }
  if (o.age_bound) {
    require_between("--age-bound", static_cast<double>(*o.age_bound), 0, 1e9);
  }
  require_between("--bucket-bytes", static_cast<double>(o.bucket_bytes), 1, 1e12);
  if (o.algorithm == "alone") {
    require(o.schedule.empty() && !o.group_size && !o.sync_period && !o.model_sync &&
                o.trigger.empty() && o.averaging.empty() && !o.age_bound && !o.bf16 &&
                !o.no_overlap && o.peers == 1,
            "--algorithm alone averages nothing: it has no schedule, group, peers, sync period, "
            "trigger, order, age bound, overlap or wire format");
    return;
  }
  const topology::Algorithm& algorithm = topology::find_algorithm(o.algorithm);
  if (!o.averaging.empty()) {
    require_word("--averaging", o.averaging, {"after", "beside"});
    require(topology::has_orders(algorithm),
            "--averaging is for d-psgd, wagma and local-sgd, not for {}", o.algorithm);
  }
  const bool is_eager = topology::is_eager(algorithm);
  require(is_eager || !o.model_sync,
          "--model-sync is for eager-solo and eager-majority, not for {}", o.algorithm);
  if (is_eager) {
    o.model_sync = o.model_sync.value_or(kModelSyncEpochs);
  }
  require(o.peers == 1 || topology::has_peers(algorithm, o.schedule),
          "--peers is for sgp, overlapped-sgp and the schedules push and base-k");
  const bool is_held = algorithm.payload == topology::Payload::HeldModel;
  require(is_held || o.gradient_at == "own", "--gradient-at mixed is not for {}", o.algorithm);
  require(is_held || o.trigger != "need", "--trigger need is not for {}", o.algorithm);
  require(
      !o.bf16 || algorithm.payload != topology::Payload::Gradients,
      "--bf16 is not for {}, which averages gradients: they would lose what rounding takes away",
      o.algorithm);
  if (o.schedule.empty()) {
    o.schedule = algorithm.schedules.front();
  } else if (!o.schedule.starts_with("file:")) {
    require_word(fmt::format("--schedule of {}", o.algorithm), o.schedule,
                 {algorithm.schedules.begin(), algorithm.schedules.end()});
  }
  topology::ScheduleOptions schedule{.workers = static_cast<std::uint32_t>(workers),
                                     .seed = static_cast<std::uint64_t>(o.seed)};
  if (o.group_size) {
    schedule.group_size = static_cast<std::uint32_t>(*o.group_size);
  }
  schedule.peers = static_cast<std::uint32_t>(o.peers);
  topology::make_schedule(o.schedule, schedule);
}

// Rounded as the step is that the run goes on at, which is then not behind its end.
void rescale_steps(ImagesOptions& o, std::size_t workers) {
  if (o.steps && o.steps_of_workers) {
    const double all = static_cast<double>(*o.steps) * *o.steps_of_workers;
    o.steps = std::max<std::int64_t>(1, std::llround(all / static_cast<double>(workers)));
  }
  o.steps_of_workers.reset();
}

void settle_run(ImagesOptions& o) {
  if (!is_flat_model(o.model)) {
    require_word("--model", o.model, {"mlp", "cnn", "small-cnn", "resnet20"});
  }
  require_word("--data", o.data, {"fashion-mnist", "cifar10"});
  require_between("--batch", static_cast<double>(o.batch), 1, 1e6);
  require(!o.steps || !o.epochs, "--steps and --epochs: give one of them");
  if (o.steps) {
    require_between("--steps", static_cast<double>(*o.steps), 1, kMostSteps);
  } else {
    o.epochs = o.epochs.value_or(5);
    require(*o.epochs > 0 && *o.epochs <= 1e6, "--epochs must be above 0 and at most 1e6, not {}",
            *o.epochs);
  }
  require_least("--seed", o.seed, 0);
  require_between("--warm-up-steps", static_cast<double>(o.warm_up_steps), 0, kMostSteps);
  require(!o.steps || o.warm_up_steps < *o.steps, "--warm-up-steps {} of --steps {}: none is left",
          o.warm_up_steps, o.steps.value_or(0));
  require_between("--eval-every", static_cast<double>(o.eval_every), 0, kMostSteps);
  require(!o.no_evaluation || o.eval_every == 0, "--eval-every with --no-evaluation");
  require_between("--checkpoint-every", static_cast<double>(o.checkpoint_every), 0, kMostSteps);
  require_between("--keep", static_cast<double>(o.keep), 1, 1e6);
  require_between("--evaluate-batch", static_cast<double>(o.evaluate_batch), 1, 1e6);
  require_between("--threads", static_cast<double>(o.threads), 0, 4096);
  require_word("--on-loss", o.on_loss, {"stop", "continue"});
  require_word("--non-finite", o.non_finite, {"stop", "skip"});
  require(o.device == "cpu", "--device {}: a model on a GPU is not supported yet", o.device);
  require(!o.clip || (*o.clip > 0 && std::isfinite(*o.clip)), "--clip must be above 0, not {}",
          o.clip.value_or(0));
  require(o.clip || o.clip_mode.empty(), "--clip-mode needs the norm: --clip NORM");
  if (o.clip) {
    o.clip_mode = o.clip_mode.empty() ? "global" : o.clip_mode;
    require_word("--clip-mode", o.clip_mode, {"global", "delayed", "bucket"});
  }
}

template <typename T>
ordered_json json_or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}
ordered_json json_or_null(const std::string& value) {
  return value.empty() ? ordered_json() : ordered_json(value);
}

}  // namespace

std::string algorithm_name(const std::string& typed) {
  return typed == "alone" ? typed : std::string(topology::find_algorithm(typed).name);
}

ImagesOptions settle(ImagesOptions options, std::size_t workers) {
  options.algorithm = algorithm_name(options.algorithm);
  rescale_steps(options, workers);
  settle_run(options);
  settle_optimizer(options);
  settle_algorithm(options, workers);
  train::parse_learning_rate(options.lr_schedule, 1e6);
  if (is_flat_model(options.model)) {
    require(!options.emulate_compute.empty(),
            "--model {} computes nothing: say with --emulate-compute how long it does",
            options.model);
    options.no_evaluation = true;
  }
  const auto seed = static_cast<std::uint64_t>(options.seed);
  static_cast<void>(Delay(options.delay, static_cast<std::uint32_t>(workers), seed));
  require(options.emulate_compute.empty() || options.pace.empty(),
          "--pace with --emulate-compute: there is nothing to slow down");
  for (const std::string& text : {options.emulate_compute, options.pace}) {
    if (!text.empty()) {
      static_cast<void>(ComputeTimes(text, seed));
    }
  }
  return options;
}

std::uint64_t steps_of(const ImagesOptions& options, std::size_t workers, std::size_t samples) {
  const std::size_t together = static_cast<std::size_t>(options.batch) * workers;
  require(together <= samples,
          "--batch {} of {} workers is more than the {} training images of {} in one step",
          options.batch, workers, samples, options.data);
  if (options.steps) {
    return static_cast<std::uint64_t>(*options.steps);
  }
  const std::size_t an_epoch = samples / together;
  const double steps = std::round(*options.epochs * static_cast<double>(an_epoch));
  const auto whole = static_cast<std::uint64_t>(std::max(1.0, steps));
  require(static_cast<std::uint64_t>(options.warm_up_steps) < whole,
          "--warm-up-steps {}: the run has {} steps", options.warm_up_steps, whole);
  return whole;
}

ordered_json json_of(const ImagesOptions& o) {
  return {{"model", o.model},
          {"data", o.data},
          {"batch", o.batch},
          {"epochs", json_or_null(o.epochs)},
          {"steps", json_or_null(o.steps)},
          {"seed", o.seed},
          {"algorithm", o.algorithm},
          {"schedule", json_or_null(o.schedule)},
          {"group_size", json_or_null(o.group_size)},
          {"peers", o.peers},
          {"sync_period", json_or_null(o.sync_period)},
          {"model_sync", json_or_null(o.model_sync)},
          {"averaging", json_or_null(o.averaging)},
          {"trigger", json_or_null(o.trigger)},
          {"age_bound", json_or_null(o.age_bound)},
          {"overlap", !o.no_overlap},
          {"gradient_at", o.gradient_at},
          {"bf16", o.bf16},
          {"bucket_bytes", o.bucket_bytes},
          {"optimizer", o.optimizer},
          {"lr", json_or_null(o.lr)},
          {"lr_schedule", o.lr_schedule},
          {"momentum", json_or_null(o.momentum)},
          {"nesterov", o.nesterov},
          {"weight_decay", json_or_null(o.weight_decay)},
          {"beta1", json_or_null(o.beta1)},
          {"beta2", json_or_null(o.beta2)},
          {"epsilon", json_or_null(o.epsilon)},
          {"window", json_or_null(o.window)},
          {"clip", json_or_null(o.clip)},
          {"clip_mode", json_or_null(o.clip_mode)},
          {"non_finite", o.non_finite},
          {"delay", json_or_null(o.delay)},
          {"emulate_compute", json_or_null(o.emulate_compute)},
          {"pace", json_or_null(o.pace)},
          {"warm_up_steps", o.warm_up_steps},
          {"eval_every", o.eval_every},
          {"no_evaluation", o.no_evaluation},
          {"evaluate_batch", o.evaluate_batch},
          {"checkpoint_every", o.checkpoint_every},
          {"keep", o.keep},
          {"resume", json_or_null(o.resume)}};
}

std::string text_of(const ImagesOptions& options) {
  const ordered_json values = json_of(options);
  std::vector<std::string> words;
  for (const auto& [name, value] : values.items()) {
    if (!value.is_null()) {
      words.push_back(
          fmt::format("{}={}", name, value.is_string() ? value.get<std::string>() : value.dump()));
    }
  }
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace starling::workload
