#include "starling/workload/images_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "starling/base/error.h"
#include "starling/workload/image_data.h"
#include "starling/workload/images_options.h"
#include "starling/workload/measure_images.h"
#include "starling/workload/prediction.h"
#include "starling/workload/resume.h"
#include "starling/workload/train_images.h"

namespace starling::workload {
namespace {

struct Request {
  ImagesOptions options;
  bool check = false;
};

void add_job_options(CLI::App& app, Request& request) {
  ImagesOptions& o = request.options;
  const char* group = "The job";
  app.add_option("-n,--workers", o.workers,
                 "Workers to start on this machine; default: one per core, at least 2")
      ->group(group);
  app.add_option("--on-loss", o.on_loss,
                 "When a worker is lost: 'continue' without it, or 'stop' all")
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.threads,
                 "Compute threads of a worker; default: cores / workers, at least 1")
      ->group(group);
  app.add_option("--device", o.device, "Where the model is; only cpu so far")
      ->capture_default_str()
      ->group(group);
  app.add_option("--out", o.out,
                 "Folder of the run, new or empty; default: runs/DATE-ALGORITHM-MODEL")
      ->group(group);
  app.add_option("--checkpoint-every", o.checkpoint_every,
                 "Steps between checkpoints, in the folder of the run; 0: none")
      ->capture_default_str()
      ->group(group);
  app.add_option("--keep", o.keep, "How many checkpoints are kept, the newest")
      ->capture_default_str()
      ->group(group);
  app.add_option("--resume", o.resume,
                 "Go on from the newest checkpoint of this run, or from this one, with its options;"
                 " in its folder (on another number of workers: a new one), or in --out")
      ->check([](const std::string& folder) {
        return folder.empty() ? std::string("no folder is named") : std::string();
      })
      ->group(group);
  app.add_option("--profile", o.profile,
                 "A profile of `starling plan`: the summary says what step time it predicts; "
                 "without one the run's own parts do")
      ->group(group);
  app.add_flag("--json", o.json, "In the end, print summary.json")->group(group);
  app.add_flag("--check", request.check)->group("");
  app.add_option("--measure", o.measure)->group("");
  app.add_option("--verify", o.verify)->group("");
  app.add_option("--verify-top", o.verify_top)->group("");
  app.add_option("--verify-bucket-bytes", o.verify_bucket_bytes)->group("");
}

void add_workload_options(CLI::App& app, ImagesOptions& o) {
  const char* group = "What is trained";
  app.add_option("--model", o.model,
                 "mlp, cnn, small-cnn, resnet20, or flat:N for N parameters and --emulate-compute")
      ->capture_default_str()
      ->group(group);
  app.add_option("--data", o.data, "fashion-mnist or cifar10")->capture_default_str()->group(group);
  app.add_option("--data-folder", o.data_folder,
                 "Where data sets are; default: STARLING_DATA, or as `starling data list` says")
      ->group(group);
  app.add_option("--batch", o.batch, "Samples of one worker's step")
      ->capture_default_str()
      ->group(group);
  app.add_option("--epochs", o.epochs, "Passes over the training images of all workers; default 5")
      ->group(group);
  app.add_option("--steps", o.steps, "Steps, in place of epochs")->group(group);
  app.add_option("--seed", o.seed, "Of initial weights, the order of samples, schedules and delays")
      ->capture_default_str()
      ->group(group);
  app.add_option("--eval-every", o.eval_every,
                 "Steps between evaluations on the test images; 0: only in the end")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--no-evaluation", o.no_evaluation, "Not in the end either")->group(group);
  app.add_option(
         "--warm-up-steps", o.warm_up_steps,
         "The first steps, which count in no time of the summary: all begin the next together")
      ->capture_default_str()
      ->group(group);
  app.add_option("--evaluate-batch", o.evaluate_batch, "Test images at a time")
      ->capture_default_str()
      ->group(group);
}

void add_algorithm_options(CLI::App& app, ImagesOptions& o) {
  const char* group = "How workers average";
  app.add_option("--algorithm", o.algorithm,
                 "See `starling topology --help`; 'alone': no averaging")
      ->capture_default_str()
      ->group(group);
  app.add_option("--schedule", o.schedule, "Who averages with whom; default: the algorithm's first")
      ->group(group);
  app.add_option("--group-size", o.group_size, "Most members of a group; default: about √N")
      ->group(group);
  app.add_option("--peers", o.peers, "Of sgp: to how many workers each sends in a step")
      ->capture_default_str()
      ->group(group);
  app.add_option("--sync-period", o.sync_period,
                 "Everybody averages at every so many steps: WAGMA's tau, local SGD's H; "
                 "default 10")
      ->group(group);
  app.add_option("--model-sync", o.model_sync,
                 "Of eager-solo and eager-majority: epochs after which all models become their "
                 "average; default 10, 0: never")
      ->group(group);
  app.add_option("--averaging", o.averaging,
                 "Models are averaged 'after' the update, or 'beside' it, where the gradient was "
                 "taken; of d-psgd, wagma, local-sgd")
      ->group(group);
  app.add_option(
         "--trigger", o.trigger,
         "When a round starts: all, first, first+SECONDS, first+learnt, majority, quorum:K, "
         "need")
      ->group(group);
  app.add_option("--age-bound", o.age_bound,
                 "Of trigger need: how many steps behind is too old; default 9")
      ->group(group);
  app.add_flag("--no-overlap", o.no_overlap, "Exchange inside the step, not behind the next one")
      ->group(group);
  app.add_option("--gradient-at", o.gradient_at,
                 "Of starling: gradients at the model as updated here ('own'), or as 'mixed' since")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--bf16", o.bf16, "Send numbers of 16 bits")->group(group);
  app.add_option("--bucket-bytes", o.bucket_bytes, "Bytes of the model that are exchanged as one")
      ->capture_default_str()
      ->group(group);
}

void add_optimizer_options(CLI::App& app, ImagesOptions& o) {
  const char* group = "Optimizer";
  app.add_option("--optimizer", o.optimizer,
                 "sgd, adam, adamw, accum-adam or accum-adamw; default: sgd, or the algorithm's")
      ->group(group);
  app.add_option("--lr", o.lr, "Learning rate; default: 0.05 of sgd, 0.001 of the others")
      ->group(group);
  app.add_option("--lr-schedule", o.lr_schedule,
                 "constant, cosine[:WARMUP], sqrt:WARMUP, step:AT,AT,…[:FACTOR]; in samples, or %")
      ->capture_default_str()
      ->group(group);
  app.add_option("--momentum", o.momentum, "Of sgd; default 0.9")->group(group);
  app.add_flag("--nesterov", o.nesterov, "Of sgd: Nesterov's momentum")->group(group);
  app.add_option("--weight-decay", o.weight_decay, "Default: 0.01 of adamw and accum-adamw, else 0")
      ->group(group);
  app.add_option("--beta1", o.beta1, "Of Adam: decay of the first moment; default 0.9")
      ->group(group);
  app.add_option("--beta2", o.beta2, "Of Adam: decay of the second moment; default 0.999")
      ->group(group);
  app.add_option("--epsilon", o.epsilon, "Of Adam: added to the root of the second; default 1e-8")
      ->group(group);
  app.add_option("--window", o.window, "Of accum-adam: gradients that its moments see as one; 4")
      ->group(group);
  app.add_option("--clip", o.clip, "Scale gradients down to this norm")->group(group);
  app.add_option("--clip-mode", o.clip_mode,
                 "By the norm of all: 'global'; of the step before: 'delayed'; of each 'bucket'")
      ->group(group);
  app.add_option("--non-finite", o.non_finite,
                 "When a gradient is not finite: 'stop', or 'skip' the step")
      ->capture_default_str()
      ->group(group);
}

void add_imbalance_options(CLI::App& app, ImagesOptions& o) {
  const char* group = "Imbalance on purpose";
  app.add_option("--delay", o.delay,
                 "COUNTxSECONDS: so many workers, drawn for each step, sleep; also rank:R:SECONDS, "
                 "ramp:SECONDS, rotating:FROM:TO, draw:NAME:MEAN (translation, navigation, video, "
                 "sentences, cloud)")
      ->group(group);
  app.add_option(
         "--emulate-compute", o.emulate_compute,
         "FORWARD:BACKWARD[:CV], constant:S, normal:MEAN,VARIANCE, lognormal:MEAN,VARIANCE or "
         "draw:NAME:MEAN: sleep so many seconds in place of computing")
      ->group(group);
  app.add_option("--pace", o.pace,
                 "As --emulate-compute: compute, and sleep before the backward pass until so many "
                 "seconds have passed: workers that share cores behave like machines of their own")
      ->group(group);
}

// Without reading it all.
void require_data(const ImagesOptions& options) {
  for (const KnownSet& set : known_sets()) {
    if (set.name == options.data &&
        !missing_file(set, folder_of(set.name, options.data_folder)).empty()) {
      load_images(options.data, options.data_folder);  // says so
    }
  }
}

// Options that were not typed are those of the run that is resumed; those that were may not be
// others.
void take_over(CLI::App& command, ImagesOptions& options) {
  const Manifest manifest = find_resumption(options.resume).manifest;
  options.algorithm = algorithm_name(options.algorithm);
  const nlohmann::ordered_json typed = json_of(options);
  const auto option_of = [&](std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return command.get_option_no_throw("--" + (name == "overlap" ? "no-overlap" : name));
  };
  const auto is_typed = [&](const char* name) { return option_of(name)->count() > 0; };
  const bool has_length = is_typed("steps") || is_typed("epochs");
  for (const auto& [name, before] : manifest.configuration.items()) {
    CLI::Option* option = option_of(name);
    const bool is_length = name == "steps" || name == "epochs";
    if (option == nullptr || name == "resume" || (is_length && has_length)) {
      continue;
    }
    if (option->count() > 0) {
      // On how many workers is not known here.
      require(may_differ(name, /*grouped_anew=*/true) || typed[name] == before,
              "{}: the run that is resumed has {}, and goes on with it", option->get_name(),
              before.is_string() ? before.get<std::string>() : before.dump());
      continue;
    }
    const bool is_on = name == "overlap" ? before == false : before == true;
    if (before.is_boolean() ? is_on : !before.is_null()) {
      option->add_result(before.is_boolean()  ? "true"
                         : before.is_string() ? before.get<std::string>()
                                              : before.dump());
      option->run_callback();
    }
  }
  if (options.steps && !has_length) {
    options.steps_of_workers = manifest.workers;
  }
}

void check_only(const ImagesOptions& typed) {
  const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::int64_t workers = typed.workers.value_or(std::max<std::int64_t>(2, cores));
  if (!typed.resume.empty()) {
    const Resumption resumption = find_resumption(typed.resume);
    require_whole(resumption.checkpoint);
    workers = typed.workers.value_or(resumption.manifest.workers);
  }
  require(workers >= 1 && workers <= 4096, "--workers must be between 1 and 4096, not {}", workers);
  const ImagesOptions options = settle(typed, static_cast<std::size_t>(workers));
  require_data(options);
  require_profile_of(options, static_cast<std::size_t>(workers));
  const nlohmann::ordered_json answer = {
      {"workers", workers}, {"threads", options.threads}, {"on_loss", options.on_loss}};
  fmt::print("{}\n", answer.dump());
}

}  // namespace

void add_images_command(CLI::App& app) {
  // Lives as long as the callback that reads it.
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("images", "Train a model on images");
  command->footer(
      "`starling train images` starts its workers itself; under `starling run`, mpirun, srun and\n"
      "torchrun each process is one. Exit codes: 0 done, 1 failed, 2 wrong command line or input,\n"
      "128 + S if interrupted by signal S.");
  add_job_options(*command, *request);
  add_workload_options(*command, request->options);
  add_algorithm_options(*command, request->options);
  add_optimizer_options(*command, request->options);
  add_imbalance_options(*command, request->options);
  command->callback([request, command] {
    if (!request->options.resume.empty()) {
      take_over(*command, request->options);
    }
    if (request->check) {
      check_only(request->options);
    } else if (!request->options.measure.empty()) {
      measure_images(request->options);
    } else {
      train_images(request->options);
    }
  });
}

}  // namespace starling::workload
